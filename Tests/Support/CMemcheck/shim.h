// SPDX-License-Identifier: Apache-2.0
#pragma once
// The client requests of valgrind's memcheck (its manual, chapter 4.7) are macros. Outside valgrind they do nothing.
#include <stddef.h>

#if __has_include(<valgrind/memcheck.h>)
#include <valgrind/memcheck.h>

/// Whether memcheck, or another tool of valgrind's, runs this program.
static inline int memcheck_is_watching(void) { return RUNNING_ON_VALGRIND != 0; }

/// From here on memcheck reports every branch on these bytes, every address made of them, and the same for all that
/// is computed from them.
static inline void memcheck_make_secret(const void *address, size_t count) {
  (void)VALGRIND_MAKE_MEM_UNDEFINED(address, count);
}

static inline void memcheck_make_public(const void *address, size_t count) {
  (void)VALGRIND_MAKE_MEM_DEFINED(address, count);
}

/// How many of these bytes are secret in one bit at least; -1 if memcheck does not know the memory.
static inline long memcheck_count_secret(const void *address, size_t count) {
  long secret = 0;
  for (size_t index = 0; index < count; index++) {
    unsigned char bits = 0;
    if (VALGRIND_GET_VBITS((const char *)address + index, &bits, 1) != 1) return -1;
    secret += bits != 0;
  }
  return secret;
}
#else
// The Debian package is called valgrind. Without it the probe builds, and reports that it is not checked.
static inline int memcheck_is_watching(void) { return 0; }
static inline void memcheck_make_secret(const void *address, size_t count) { (void)address, (void)count; }
static inline void memcheck_make_public(const void *address, size_t count) { (void)address, (void)count; }
static inline long memcheck_count_secret(const void *address, size_t count) { (void)address, (void)count; return -1; }
#endif
