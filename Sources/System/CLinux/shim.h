// SPDX-License-Identifier: Apache-2.0
#pragma once
// Wrappers for what glibc declares as variadic, as macros, or only for _GNU_SOURCE, which Swift cannot call.
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/sysinfo.h>
#include <sys/timex.h>

/// Disables core dumps and debuggers of the same user.
static inline int approval_linux_forbid_dumps(void) {
  struct rlimit none = {0, 0};
  int limit = setrlimit(RLIMIT_CORE, &none);
  int dumpable = prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
  return limit == 0 && dumpable == 0 ? 0 : -1;
}

/// Sets the name of the calling thread, which `top -H` shows; at most 15 bytes.
static inline void approval_linux_name_thread(const char *name) { prctl(PR_SET_NAME, name, 0, 0, 0); }

/// Makes malloc overwrite larger pieces of freed memory (glibc's M_PERTURB; pieces up to about 1 KiB in a thread's
/// cache are not overwritten). Returns 1 on success.
static inline int approval_linux_overwrite_freed_memory(void) { return mallopt(M_PERTURB, 0xA5); }

/// Lets all threads allocate from one arena: each further one keeps freed memory of its own. Returns 1 on success.
static inline int approval_linux_use_one_arena(void) { return mallopt(M_ARENA_MAX, 1); }

static inline int approval_linux_leave_out_of_dumps(void *address, size_t count) {
  return madvise(address, count, MADV_DONTDUMP);
}

/// The number of bytes this process may lock; 0 if unknown.
static inline unsigned long long approval_linux_lockable_bytes(void) {
  struct rlimit limit;
  return getrlimit(RLIMIT_MEMLOCK, &limit) == 0 ? limit.rlim_cur : 0;
}

/// The total swap space in bytes.
static inline unsigned long long approval_linux_swap_bytes(void) {
  struct sysinfo info;
  return sysinfo(&info) == 0 ? (unsigned long long)info.totalswap * info.mem_unit : 0;
}

/// Waits until the peer or this side closes a socket. POLLRDHUP, which detects that without a write, is declared only
/// for _GNU_SOURCE.
static inline void approval_linux_wait_for_hang_up(int descriptor) {
  struct pollfd watched = {descriptor, 0x2000, 0};
  while (poll(&watched, 1, -1) < 0 && errno == EINTR) {}
}

/// Accepts a connection, with close-on-exec; -1 and errno if there is none.
static inline int approval_linux_accept(int listener) {
  int caller;
  do caller = accept(listener, 0, 0); while (caller < 0 && (errno == EINTR || errno == ECONNABORTED));
  if (caller >= 0) fcntl(caller, F_SETFD, FD_CLOEXEC);
  return caller;
}

/// Whether the kernel reports that the clock follows a time source (NTP, PTP, GPS): 1 if it does; 0 if not, or if a
/// sandbox forbids the call.
static inline int approval_linux_clock_is_synchronized(void) {
  struct timex state = {0};
  int status = adjtimex(&state);
  return status >= 0 && status != TIME_ERROR && (state.status & STA_UNSYNC) == 0;
}
