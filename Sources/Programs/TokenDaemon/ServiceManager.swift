// SPDX-License-Identifier: Apache-2.0
import Glibc
import Logging

/// Messages to the process that started the service, as in sd_notify(3): datagrams to the socket that `NOTIFY_SOCKET`
/// names.
package struct ServiceManager: Sendable {
  private let path: String?
  /// How often the service manager must hear `WATCHDOG=1`: half of the time after which it restarts a silent service,
  /// from 0.1 s to an hour. Nil if it does not watch this process.
  package let watchdogInterval: Duration?
  /// The journal that standard error is connected to; nil if it is connected to anything else.
  let journal: JournalSocket?

  /// - Parameters:
  ///   - path: the value of `NOTIFY_SOCKET`; a leading `@` stands for an abstract address. Nil or empty: no message is
  ///     sent.
  ///   - watchdogMicroseconds: the value of `WATCHDOG_USEC`, as in sd_watchdog_enabled(3). Not a positive number: no
  ///     watchdog.
  ///   - watchdogProcess: the value of `WATCHDOG_PID`: the process that is watched; nil for any.
  ///   - journalStream: the value of `JOURNAL_STREAM`.
  package init(
    path: String?, watchdogMicroseconds: String? = nil, watchdogProcess: String? = nil, journalStream: String? = nil
  ) {
    self.path = path
    journal = JournalSocket(stream: journalStream)
    let isWatched = watchdogProcess.map { Int32($0) == getpid() } ?? true
    let microseconds = watchdogMicroseconds.flatMap { UInt64($0) }.map { Int64(clamping: $0 / 2) } ?? 0
    let interval = Duration.microseconds(microseconds)
    watchdogInterval = isWatched && microseconds > 0 ? min(max(interval, .milliseconds(100)), .seconds(3600)) : nil
  }

  /// The log of this process: the journal, or standard error.
  var logger: Logger {
    var logger = Logger(label: "approval-token") { label -> any LogHandler in
      guard let journal else { return PlainLog(label) }
      return JournalLog(journal, label)
    }
    logger.logLevel = .info
    return logger
  }

  /// Sends a message like `READY=1`. An error has no effect here: the service manager has time limits of its own.
  package func notify(_ message: String) {
    guard let path else { return }
    _ = sendDatagram(Array(message.utf8), to: path, waits: true)
  }
}
