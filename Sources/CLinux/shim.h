#pragma once
// What glibc declares variadic or as a macro and Swift therefore cannot call.
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>

/// After this no core dump and no debugger of the same user can read the process.
static inline int approval_linux_forbid_dumps(void) {
  struct rlimit none = {0, 0};
  int limit = setrlimit(RLIMIT_CORE, &none);
  int dumpable = prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
  return limit == 0 && dumpable == 0 ? 0 : -1;
}
static inline int approval_linux_leave_out_of_dumps(void *address, size_t count) {
  return madvise(address, count, MADV_DONTDUMP);
}
