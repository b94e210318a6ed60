// SPDX-License-Identifier: Apache-2.0
import CLinux
import Glibc
import Synchronization

/// The main thread of a program: it starts the first task and then waits for signals.
package enum MainThread {
  private static let stop = Mutex<(@Sendable () -> Void)?>(nil)

  /// Sets what SIGTERM, SIGINT and SIGHUP do, in place of ending the process; nil: they end it. Has an effect only in a
  /// program that was started with `run`.
  package static func onStopSignal(_ body: (@Sendable () -> Void)?) { stop.withLock { $0 = body } }

  /// Runs `body` as the first task of the program and ends the process with exit code 0 after it. Must be called before
  /// the program has threads: all of them inherit that these signals are blocked.
  package static func run(_ body: @escaping @Sendable () async -> Void) -> Never {
    var signals = sigset_t()
    sigemptyset(&signals)
    // A signal that the parent ignores, such as SIGINT for a job in the background, or SIGHUP under nohup, stays
    // ignored.
    for number in [SIGTERM, SIGINT, SIGHUP] where !isIgnored(number) { sigaddset(&signals, number) }
    pthread_sigmask(SIG_BLOCK, &signals, nil)
    _ = approval_linux_use_one_arena()
    useTaskThreads()
    Task.detached {
      await body()
      exit(EXIT_SUCCESS)
    }
    while true {
      var signal: Int32 = 0
      guard sigwait(&signals, &signal) == 0 else { continue }
      guard let stop = stop.withLock({ $0 }) else { end(by: signal) }
      stop()
    }
  }

  private static func isIgnored(_ number: Int32) -> Bool {
    var action = sigaction()
    guard sigaction(number, nil, &action) == 0 else { return false }
    return unsafeBitCast(action.__sigaction_handler.sa_handler, to: Int.self) == unsafeBitCast(SIG_IGN, to: Int.self)
  }

  /// Ends the process as the signal's default action does, so that its parent sees the signal.
  private static func end(by number: Int32) -> Never {
    signal(number, SIG_DFL)
    var signals = sigset_t()
    sigemptyset(&signals)
    sigaddset(&signals, number)
    pthread_sigmask(SIG_UNBLOCK, &signals, nil)
    raise(number)
    exit(128 + number)
  }
}
