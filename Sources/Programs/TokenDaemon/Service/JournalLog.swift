// SPDX-License-Identifier: Apache-2.0
import DisplayText
import Glibc
import Logging
import NetworkDaemon

/// A log handler that sends each event with its metadata to the journal of systemd: `MESSAGE`, `PRIORITY`,
/// `SYSLOG_IDENTIFIER`, and a field for each key, in capital letters. Texts are sanitized: no line breaks, which would
/// begin another field, at most 1000 Unicode scalars in the message and 200 in another field. What the journal does not
/// take at once is a line on standard error.
struct JournalLog: LogHandler {
  private let journal: JournalSocket
  private var plain: PlainLog
  var metadata: Logger.Metadata = [:]

  init(_ journal: JournalSocket, _ label: String) {
    self.journal = journal
    plain = PlainLog(label)
  }

  var logLevel: Logger.Level {
    get { plain.logLevel }
    set { plain.logLevel = newValue }
  }

  subscript(metadataKey key: String) -> Logger.Metadata.Value? {
    get { metadata[key] }
    set { metadata[key] = newValue }
  }

  func log(event: LogEvent) {
    let fields = metadata.merging(event.metadata ?? [:]) { $1 }
    if !journal.send(Self.entry(event.level, "\(event.message)", fields)) { plain.log(event: event) }
  }

  /// One entry as journald reads it.
  static func entry(_ level: Logger.Level, _ message: String, _ fields: Logger.Metadata) -> [UInt8] {
    var lines = [
      "MESSAGE=\(message.sanitized(atMost: 1000))", "PRIORITY=\(level.priority)", "SYSLOG_IDENTIFIER=approval-tokend",
    ]
    lines += fields.sorted { $0.key < $1.key }.map { "\($0.key.uppercased())=\("\($0.value)".sanitized)" }
    return Array((lines.joined(separator: "\n") + "\n").utf8)
  }
}

extension Logger.Level {
  /// As in syslog(3).
  fileprivate var priority: Int {
    switch self {
    case .trace, .debug: 7
    case .info: 6
    case .notice: 5
    case .warning: 4
    case .error: 3
    case .critical: 2
    }
  }
}

/// The socket of systemd-journald for entries with fields.
struct JournalSocket: Sendable {
  private let path: String

  /// - Parameters:
  ///   - stream: the value of `JOURNAL_STREAM`, the device and inode numbers of the connection to the journal as in
  ///     systemd.exec(5). Nil if the descriptor is not this connection.
  init?(stream: String?, descriptor: Int32 = 2, path: String = "/run/systemd/journal/socket") {
    var status = stat()
    guard let stream, fstat(descriptor, &status) == 0, stream == "\(status.st_dev):\(status.st_ino)" else { return nil }
    self.path = path
  }

  func send(_ entry: [UInt8]) -> Bool { sendDatagram(entry, to: path, waits: false) }
}

extension Logger {
  /// The log of the service: the journal if standard error is connected to it, or standard error.
  /// - Parameter journalStream: the value of `JOURNAL_STREAM`.
  static func ofService(journalStream: String?) -> Logger {
    let journal = JournalSocket(stream: journalStream)
    var logger = Logger(label: "approval-token") { label -> any LogHandler in
      guard let journal else { return PlainLog(label) }
      return JournalLog(journal, label)
    }
    logger.logLevel = .info
    return logger
  }
}
