// SPDX-License-Identifier: Apache-2.0
#pragma once
// Wrappers for what glibc declares as variadic, as macros, or only for _GNU_SOURCE, which Swift cannot call.
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdint.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/sysinfo.h>
#include <sys/timex.h>
#include <time.h>
#include <unistd.h>

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
/// cache are not overwritten, and the packaged units turn that cache off). Returns 1 on success.
static inline int approval_linux_overwrite_freed_memory(void) { return mallopt(M_PERTURB, 0xA5); }

/// Gives pages with nothing but freed memory back to the kernel. Returns 1 if there were any.
static inline int approval_linux_give_back_freed_memory(void) { return malloc_trim(0); }

/// Lets each arena keep up to 4 MiB of freed memory, and pieces of up to 1 MiB in it: glibc would give back what is
/// above 128 KiB, at first, at once. Returns 1 on success.
static inline int approval_linux_keep_freed_memory(void) {
  return mallopt(M_TRIM_THRESHOLD, 4 << 20) == 1 && mallopt(M_MMAP_THRESHOLD, 1 << 20) == 1;
}

/// Lets all threads allocate from one arena: each further one keeps freed memory of its own. Returns 1 on success.
static inline int approval_linux_use_one_arena(void) { return mallopt(M_ARENA_MAX, 1); }

/// The lowest address of the calling thread's stack; NULL if it is not known. Not for the first thread of a process,
/// whose stack grows.
static inline const void *approval_linux_lowest_stack_address(void) {
  extern int pthread_getattr_np(pthread_t, pthread_attr_t *);
  pthread_attr_t attributes;
  void *lowest = NULL;
  size_t size;
  if (pthread_getattr_np(pthread_self(), &attributes) != 0) return NULL;
  if (pthread_attr_getstack(&attributes, &lowest, &size) != 0) lowest = NULL;
  pthread_attr_destroy(&attributes);
  return lowest;
}

/// If the calling thread has used more than `most` bytes of its stack beyond what is in use, gives what is not in use
/// back to the kernel. `lowest`: of `approval_linux_lowest_stack_address`. Looks for traces in the `range` bytes beyond
/// `most`. Returns 1 if it did so, otherwise 0.
static inline int approval_linux_discard_unused_stack(const void *lowest, size_t most, size_t range) {
  const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE);
  // A page is left to this function and those that it calls.
  const uintptr_t end = ((uintptr_t)__builtin_frame_address(0) & ~(page - 1)) - page;
  if (lowest == NULL || end - (uintptr_t)lowest < most + range) return 0;
  // A page that was never used reads as zeros, and takes no memory then. One word of each 64 bytes is enough.
  const volatile uint64_t *word = (const volatile uint64_t *)(end - most);
  const volatile uint64_t *const last = (const volatile uint64_t *)(end - most - range);
  while (*word == 0) {
    word -= 8;
    if (word <= last) return 0;
  }
  return madvise((void *)lowest, end - (uintptr_t)lowest, MADV_DONTNEED) == 0;
}

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

/// Makes a set of descriptors to wait for (epoll(7)), with an eventfd in it by which other threads interrupt the wait.
/// Returns -1 and errno on failure.
static inline int approval_linux_poller_make(int *interrupt) {
  int poller = epoll_create1(EPOLL_CLOEXEC);
  *interrupt = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  struct epoll_event event = {0};
  event.events = EPOLLIN;
  event.data.fd = *interrupt;
  return poller < 0 || *interrupt < 0 || epoll_ctl(poller, EPOLL_CTL_ADD, *interrupt, &event) < 0 ? -1 : poller;
}

/// Watches a descriptor until its next event, for reading, for writing, or for both. Returns -1 and errno on failure.
static inline int approval_linux_poller_watch(int poller, int descriptor, int reading, int writing) {
  if (!reading && !writing) return 0;
  struct epoll_event event = {0};
  event.events = EPOLLONESHOT | (reading ? EPOLLIN | EPOLLRDHUP : 0u) | (writing ? EPOLLOUT : 0u);
  event.data.fd = descriptor;
  if (epoll_ctl(poller, EPOLL_CTL_MOD, descriptor, &event) == 0) return 0;
  return errno == ENOENT ? epoll_ctl(poller, EPOLL_CTL_ADD, descriptor, &event) : -1;
}

/// What has happened to a descriptor. A descriptor whose peer has closed it can be read and written without waiting.
typedef struct {
  int descriptor;
  int is_readable;
  int is_writable;
} approval_linux_poller_event;

/// Waits for the next event, at most `nanoseconds`, -1 for any time. The descriptor is -1 if there is none.
static inline approval_linux_poller_event approval_linux_poller_next(int poller, int interrupt, long long nanoseconds) {
  extern int epoll_pwait2(int, struct epoll_event *, int, const struct timespec *, const sigset_t *);
  approval_linux_poller_event result = {-1, 0, 0};
  struct epoll_event event;
  struct timespec limit = {nanoseconds / 1000000000, nanoseconds % 1000000000};
  int count = epoll_pwait2(poller, &event, 1, nanoseconds < 0 ? NULL : &limit, NULL);
  // Linux has this call since 5.11; filters of containers that do not know it answer EPERM.
  if (count < 0 && (errno == ENOSYS || errno == EPERM)) {
    long long milliseconds = nanoseconds < 0 ? -1 : nanoseconds / 1000000 + (nanoseconds % 1000000 != 0);
    count = epoll_wait(poller, &event, 1, milliseconds > 0x7fffffff ? 0x7fffffff : (int)milliseconds);
  }
  if (count < 1) return result;
  if (event.data.fd == interrupt) {
    eventfd_t count;
    eventfd_read(interrupt, &count);
    return result;
  }
  unsigned int closed = event.events & (EPOLLHUP | EPOLLERR);
  result.descriptor = event.data.fd;
  result.is_readable = (event.events & (EPOLLIN | EPOLLRDHUP)) || closed;
  result.is_writable = (event.events & EPOLLOUT) || closed;
  return result;
}

/// Accepts a connection without waiting, with close-on-exec; -1 and errno if there is none.
static inline int approval_linux_accept_now(int listener) {
  int caller = accept(listener, 0, 0);
  if (caller >= 0) {
    fcntl(caller, F_SETFD, FD_CLOEXEC);
    fcntl(caller, F_SETFL, fcntl(caller, F_GETFL) | O_NONBLOCK);
  }
  return caller;
}

/// Makes the calls of a socket return without waiting.
static inline void approval_linux_never_wait(int descriptor) {
  fcntl(descriptor, F_SETFL, fcntl(descriptor, F_GETFL) | O_NONBLOCK);
}

/// A file in memory with these bytes, to be read as /proc/self/fd/NUMBER; -1 and errno on failure.
static inline int approval_linux_file_in_memory(const char *name, const void *bytes, size_t count) {
  extern int memfd_create(const char *, unsigned);
  int descriptor = memfd_create(name, 1 /* MFD_CLOEXEC */);
  if (descriptor < 0 || write(descriptor, bytes, count) == (ssize_t)count) return descriptor;
  close(descriptor);
  return -1;
}
