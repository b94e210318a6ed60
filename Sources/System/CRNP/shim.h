// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <rnp/rnp.h>
#include <rnp/rnp_err.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

/// A redirection of standard error.
typedef struct {
  int former;
  int reader;
} approval_rnp_diversion;

/// Redirects standard error to a pipe, if descriptors are available.
static inline approval_rnp_diversion approval_rnp_divert(void) {
  approval_rnp_diversion diversion = {-1, -1};
  int ends[2];
  if (pipe(ends) != 0) return diversion;
  for (int end = 0; end < 2; end++) {
    fcntl(ends[end], F_SETFD, FD_CLOEXEC);
    fcntl(ends[end], F_SETFL, O_NONBLOCK);
  }
  diversion.former = fcntl(2, F_DUPFD_CLOEXEC, 3);
  diversion.reader = ends[0];
  if (diversion.former >= 0) dup2(ends[1], 2);
  close(ends[1]);
  return diversion;
}

/// Restores standard error and writes what was written in the meantime, without librnp's own lines: "[function()
/// ./src/…".
static inline void approval_rnp_restore(approval_rnp_diversion *diversion) {
  static char held[65537];
  if (diversion->reader < 0) return;
  if (diversion->former >= 0) {
    dup2(diversion->former, 2);
    close(diversion->former);
    ssize_t count = read(diversion->reader, held, sizeof held - 1);
    if (count > 0) {
      held[count] = 0;
      for (char *line = held; *line;) {
        char *end = strchr(line, '\n');
        size_t length = end ? (size_t)(end - line) + 1 : strlen(line);
        char *source = strstr(line, " ./src/");
        if (!(line[0] == '[' && source && source < line + length) && write(2, line, length) < 0) break;
        line += length;
      }
    }
  }
  close(diversion->reader);
}
