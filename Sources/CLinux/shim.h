#pragma once
// What glibc declares variadic, as a macro, or only for _GNU_SOURCE, and Swift therefore cannot call.
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

/// After this no core dump and no debugger of the same user can read the process.
static inline int approval_linux_forbid_dumps(void) {
  struct rlimit none = {0, 0};
  int limit = setrlimit(RLIMIT_CORE, &none);
  int dumpable = prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
  return limit == 0 && dumpable == 0 ? 0 : -1;
}

/// From here on larger pieces of freed memory are overwritten (glibc's M_PERTURB; those up to about 1 KiB that a thread
/// keeps for itself are not). 1 if it will be so.
static inline int approval_linux_overwrite_freed_memory(void) { return mallopt(M_PERTURB, 0xA5); }

static inline int approval_linux_leave_out_of_dumps(void *address, size_t count) {
  return madvise(address, count, MADV_DONTDUMP);
}

/// Bytes this process may lock; 0 if unknown.
static inline unsigned long long approval_linux_lockable_bytes(void) {
  struct rlimit limit;
  return getrlimit(RLIMIT_MEMLOCK, &limit) == 0 ? limit.rlim_cur : 0;
}

/// Bytes of swap, of all kinds.
static inline unsigned long long approval_linux_swap_bytes(void) {
  struct sysinfo info;
  return sysinfo(&info) == 0 ? (unsigned long long)info.totalswap * info.mem_unit : 0;
}

/// Sleeps until the other side of a socket closes it, or this side does. POLLRDHUP, which says so before anything is
/// written, is only there for _GNU_SOURCE.
static inline void approval_linux_wait_for_hang_up(int descriptor) {
  struct pollfd watched = {descriptor, 0x2000, 0};
  while (poll(&watched, 1, -1) < 0 && errno == EINTR) {}
}

/// The next caller, closed on exec; -1 and errno when there is none.
static inline int approval_linux_accept(int listener) {
  int caller;
  do caller = accept(listener, 0, 0); while (caller < 0 && (errno == EINTR || errno == ECONNABORTED));
  if (caller >= 0) fcntl(caller, F_SETFD, FD_CLOEXEC);
  return caller;
}

/// Whether the kernel says that the clock follows a time source (NTP, PTP, GPS): 1 if it does; 0 if not, and where a sandbox
/// forbids to ask.
static inline int approval_linux_clock_is_synchronized(void) {
  struct timex state = {0};
  int status = adjtimex(&state);
  return status >= 0 && status != TIME_ERROR && (state.status & STA_UNSYNC) == 0;
}
