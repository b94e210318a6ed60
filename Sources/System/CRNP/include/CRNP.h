// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <errno.h>
#include <rnp/rnp.h>
#include <rnp/rnp_err.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

// glibc declares this in stdio.h only for _GNU_SOURCE, which is set for some of the compilers.
#include <bits/types/cookie_io_functions_t.h>
extern FILE *fopencookie(void *__restrict, const char *__restrict, cookie_io_functions_t);

/// Whether a line begins as librnp's messages do: "[function() ./src/file.cpp:12] ".
static inline bool approval_rnp_is_message(const char *line, size_t length) {
  static const char call[] = "() ";
  if (length == 0 || line[0] != '[') return false;
  size_t at = 1;
  while (at < length && (line[at] == '_' || line[at] == ':' || line[at] == '~' || (line[at] >= '0' && line[at] <= '9') ||
                         ((line[at] | 0x20) >= 'a' && (line[at] | 0x20) <= 'z')))
    at++;
  if (at == 1 || length - at < sizeof call - 1 || memcmp(line + at, call, sizeof call - 1) != 0) return false;
  const char *end = (const char *)memchr(line + at, ']', length - at);
  return end && end[-1] >= '0' && end[-1] <= '9';
}

/// Writes the lines of other code to standard error. `cookie`: whether the present line is one of librnp's, of which
/// only the beginning has come: 'd' to drop it, 'k' to keep it, 0 at the beginning of a line.
static inline ssize_t approval_rnp_write_others(void *cookie, const char *text, size_t count) {
  char *present = (char *)cookie;
  size_t start = 0;
  while (start < count) {
    const char *line = text + start;
    const char *end = (const char *)memchr(line, '\n', count - start);
    size_t length = end ? (size_t)(end - line) + 1 : count - start;
    if (*present == 0) *present = approval_rnp_is_message(line, length) ? 'd' : 'k';
    for (size_t written = 0; *present == 'k' && written < length;) {
      ssize_t result = write(STDERR_FILENO, line + written, length - written);
      if (result < 0 && errno == EINTR) continue;
      if (result <= 0) break;
      written += (size_t)result;
    }
    if (end) *present = 0;
    start += length;
  }
  return (ssize_t)count;
}

/// Drops librnp's messages from now on: the distribution's builds write them to the stream `stderr`, without a setting.
/// rnp_ffi_set_log_fd applies to a few of them only. The stream is replaced, once in a process; it writes what other
/// code prints line by line to the same descriptor.
static inline void approval_rnp_silence(void) {
  static char present = 0;
  cookie_io_functions_t functions;
  memset(&functions, 0, sizeof functions);
  functions.write = approval_rnp_write_others;
  FILE *stream = fopencookie(&present, "w", functions);
  if (!stream) return;
  setvbuf(stream, NULL, _IOLBF, 4096);
  fflush(stderr);
  stderr = stream;
}
