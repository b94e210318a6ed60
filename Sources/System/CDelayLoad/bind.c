// SPDX-License-Identifier: Apache-2.0
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

// What APPROVAL_FUNCTION of CDelayLoad.h writes down: distances from each field, so that nothing of it has to be
// corrected at the start of a program.
struct approval_function {
  int32_t address, library, package;
  char name[];
};

void *approval_bind(const struct approval_function *function) __attribute__((visibility("hidden")));

static const void *at_distance(const int32_t *field) { return (const char *)field + *field; }

// Called by approval_delay_load, by several threads at a time perhaps: dlopen returns the same library to all of them.
void *approval_bind(const struct approval_function *function) {
  const char *file = at_distance(&function->library), *package = at_distance(&function->package);
  void *library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
  void *found = library ? dlsym(library, function->name) : NULL;
  if (!found) {
    // Not through stderr, which may be another stream.
    const char *problem = dlerror();
    dprintf(STDERR_FILENO, "%s cannot be used: %s. It is in the package %s.\n", file, problem ? problem : "unknown", package);
    _exit(127);
  }
  __atomic_store_n((void **)at_distance(&function->address), found, __ATOMIC_RELEASE);
  return found;
}
