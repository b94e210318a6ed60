// SPDX-License-Identifier: Apache-2.0
#pragma once
// What glibc declares only for _GNU_SOURCE, which Swift cannot call.
#include <signal.h>
#include <spawn.h>
#include <sys/types.h>

extern int posix_spawn_file_actions_addclosefrom_np(posix_spawn_file_actions_t *, int);

/// Starts a program in a process group of its own, with default signals and without the descriptors of this process:
/// `input` is its standard input, `output` its standard output, and `errors` its standard error, or /dev/null if it is
/// negative. Returns 0, or the error number.
static inline int approval_spawn(
    pid_t *child, char *const arguments[], char *const environment[], const char *folder, int input, int output,
    int errors) {
  extern int posix_spawn_file_actions_addchdir_np(posix_spawn_file_actions_t *, const char *);
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  int error = posix_spawn_file_actions_init(&actions);
  if (error) return error;
  error = posix_spawnattr_init(&attributes);
  if (error) {
    posix_spawn_file_actions_destroy(&actions);
    return error;
  }
  sigset_t none, all;
  sigemptyset(&none);
  sigfillset(&all);
  if (!error) error = posix_spawnattr_setsigmask(&attributes, &none);
  if (!error) error = posix_spawnattr_setsigdefault(&attributes, &all);
  if (!error) error = posix_spawnattr_setpgroup(&attributes, 0);
  if (!error)
    error = posix_spawnattr_setflags(
        &attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
  if (!error) error = posix_spawn_file_actions_adddup2(&actions, input, 0);
  if (!error) error = posix_spawn_file_actions_adddup2(&actions, output, 1);
  if (!error && errors >= 0) error = posix_spawn_file_actions_adddup2(&actions, errors, 2);
  if (!error && errors < 0) error = posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", 1 /* O_WRONLY */, 0);
  if (!error) error = posix_spawn_file_actions_addclosefrom_np(&actions, 3);
  if (!error) error = posix_spawn_file_actions_addchdir_np(&actions, folder);
  if (!error) error = posix_spawn(child, arguments[0], &actions, &attributes, arguments, environment);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  return error;
}

/// A descriptor that becomes readable when the child ends; -1 and errno on error.
static inline int approval_pidfd_open(pid_t child) {
  extern int pidfd_open(pid_t, unsigned);
  return pidfd_open(child, 0);
}

/// A file in memory, closed in programs that this process starts; -1 and errno on error.
static inline int approval_memory_file(void) {
  extern int memfd_create(const char *, unsigned);
  return memfd_create("script-input", 1 /* MFD_CLOEXEC */);
}

/// A pipe, closed in programs that this process starts; 0, or -1 and errno.
static inline int approval_pipe(int ends[2]) {
  extern int pipe2(int *, int);
  return pipe2(ends, 02000000 /* O_CLOEXEC */);
}
