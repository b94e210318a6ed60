// SPDX-License-Identifier: Apache-2.0
/// A library that sets back only the wall clock. libfaketime also changes the timers that the token sleeps with, which
/// a wrong wall clock does not do.
/// - Returns: the value for `LD_PRELOAD`.
package func wallClock(secondsBack: Int, in folder: TemporaryDirectory) async throws -> String {
  let source = try folder.write(
    """
    #define _GNU_SOURCE
    #include <sys/syscall.h>
    #include <sys/time.h>
    #include <time.h>
    #include <unistd.h>

    int clock_gettime(clockid_t clock, struct timespec *now) {
      long code = syscall(SYS_clock_gettime, clock, now);
      if (code == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) now->tv_sec -= SECONDS_BACK;
      return (int)code;
    }

    time_t time(time_t *copy) {
      struct timespec now;
      clock_gettime(CLOCK_REALTIME, &now);
      if (copy) *copy = now.tv_sec;
      return now.tv_sec;
    }

    int gettimeofday(struct timeval *restrict now, void *restrict zone) {
      struct timespec fine;
      int code = clock_gettime(CLOCK_REALTIME, &fine);
      *now = (struct timeval){fine.tv_sec, fine.tv_nsec / 1000};
      return code;
    }
    """, to: "clock.c")
  let library = folder.file("clock.so")
  try await run("clang", ["-shared", "-fPIC", "-DSECONDS_BACK=\(secondsBack)", "-o", library, source]).succeeded()
  return library
}
