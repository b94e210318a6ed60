import Foundation
import Testing

extension EndToEnd {
  /// A board without a clock chip wakes up in 1970.
  @Suite struct Clocks {
    @Test func aTokenIn1970EnrolsAndApproves() async throws {
      let folder = try TemporaryDirectory()
      defer { folder.remove() }
      let clock = try await clockOf1970(in: folder)
      try await withScene(launcher: ["env", "LD_PRELOAD=\(clock)"]) { scene in
        #expect(try scene.token.log.lines.first?.hasPrefix("1970-01-01") == true)
        let transaction = try await scene.ask()
        try await scene.token.answer(transaction, with: .hold)
        #expect(try await scene.settled(transaction).hasPrefix("approved, receipt "))
        #expect(try await scene.portal.finalResult(of: transaction).isAuthenticated)
        #expect(try await scene.token.command("doctor").succeeded().output.contains("days behind"))
      }
    }
  }
}

/// A library that puts the wall clock back, and only that: libfaketime also moves the timers that the token sleeps by,
/// which no wrong wall clock does.
private func clockOf1970(in folder: TemporaryDirectory) async throws -> String {
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
  // Ten minutes after the epoch.
  let secondsBack = Int(Date().timeIntervalSince1970) - 600
  try await run("clang", ["-shared", "-fPIC", "-DSECONDS_BACK=\(secondsBack)", "-o", library, source]).succeeded()
  return library
}
