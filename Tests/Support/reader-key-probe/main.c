// SPDX-License-Identifier: Apache-2.0
// The program `reader-key` with a simulated security key: its reports go over the Unix socket (SOCK_SEQPACKET) that the
// argument names. With `--cards`, the keys are only those in card readers; with `--any`, all of this machine.
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "reader_key.h"

static const char *path;

static void *open_socket(const char *name) {
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  strncpy(address.sun_path, name, sizeof address.sun_path - 1);
  int descriptor = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
  if (descriptor >= 0 && connect(descriptor, (struct sockaddr *)&address, sizeof address) == 0) {
    int *handle = malloc(sizeof *handle);
    if (handle) *handle = descriptor;
    return handle;
  }
  if (descriptor >= 0) close(descriptor);
  return NULL;
}

static void close_socket(void *handle) {
  close(*(int *)handle);
  free(handle);
}

static int read_report(void *handle, unsigned char *bytes, size_t size, int milliseconds) {
  struct pollfd watched = {*(int *)handle, POLLIN, 0};
  if (poll(&watched, 1, milliseconds) != 1) return -1;
  ssize_t count = recv(*(int *)handle, bytes, size, 0);
  return count > 0 ? (int)count : -1;
}

static int write_report(void *handle, const unsigned char *bytes, size_t size) {
  return (int)send(*(int *)handle, bytes, size, MSG_NOSIGNAL);
}

static int open_simulated(fido_dev_t **device, const char **why) {
  (void)why;
  static const fido_dev_io_t io = {open_socket, close_socket, read_report, write_report};
  fido_dev_t *candidate = fido_dev_new();
  if (!candidate) return FIDO_ERR_INTERNAL;
  if (fido_dev_set_io_functions(candidate, &io) == FIDO_OK && fido_dev_open(candidate, path) == FIDO_OK) {
    *device = candidate;
    return FIDO_OK;
  }
  fido_dev_free(&candidate);
  return FIDO_ERR_NOTFOUND;
}

static const char *wanted(void) { return "plug in the security key"; }

int main(int count, char *arguments[]) {
  if (count != 2) return 64;
  if (strcmp(arguments[1], "--cards") == 0) return reader_key_run(&reader_key_cards);
  if (strcmp(arguments[1], "--any") == 0) return reader_key_run(&reader_key_any);
  path = arguments[1];
  const struct reader_key_source source = {open_simulated, wanted};
  return reader_key_run(&source);
}
