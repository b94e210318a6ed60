// SPDX-License-Identifier: Apache-2.0
import Glibc

/// Messages to the process that started the service, as in sd_notify(3): datagrams to the socket that `NOTIFY_SOCKET`
/// names.
package struct ServiceManager: Sendable {
  private let path: String?
  /// How often the service manager must hear `WATCHDOG=1`: half of the time after which it restarts a silent service,
  /// from 0.1 s to an hour. Nil if it does not watch this process.
  package let watchdogInterval: Duration?

  /// - Parameters:
  ///   - path: the value of `NOTIFY_SOCKET`; a leading `@` stands for an abstract address. Nil or empty: no message is
  ///     sent.
  ///   - watchdogMicroseconds: the value of `WATCHDOG_USEC`, as in sd_watchdog_enabled(3). Not a positive number: no
  ///     watchdog.
  ///   - watchdogProcess: the value of `WATCHDOG_PID`: the process that is watched; nil for any.
  package init(path: String?, watchdogMicroseconds: String? = nil, watchdogProcess: String? = nil) {
    self.path = path
    let isWatched = watchdogProcess.map { Int32($0) == getpid() } ?? true
    let microseconds = watchdogMicroseconds.flatMap { UInt64($0) }.map { Int64(clamping: $0 / 2) } ?? 0
    let interval = Duration.microseconds(microseconds)
    watchdogInterval = isWatched && microseconds > 0 ? min(max(interval, .milliseconds(100)), .seconds(3600)) : nil
  }

  /// - Parameter environment: reads a variable of the process's environment.
  package init(_ environment: (String) -> String?) {
    self.init(
      path: environment("NOTIFY_SOCKET"), watchdogMicroseconds: environment("WATCHDOG_USEC"),
      watchdogProcess: environment("WATCHDOG_PID"))
  }

  /// Sends a message like `READY=1`. An error has no effect here: the service manager has time limits of its own.
  package func notify(_ message: String) {
    guard let path else { return }
    _ = sendDatagram(Array(message.utf8), to: path, waits: true)
  }

  /// Says on standard output and to the service manager that the service works.
  @Sendable package func reportReady() {
    print("ready")
    fflush(nil)
    notify("READY=1")
  }

  @Sendable package func reportStop() { notify("STOPPING=1") }
}
