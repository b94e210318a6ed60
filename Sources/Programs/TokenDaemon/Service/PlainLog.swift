// SPDX-License-Identifier: Apache-2.0
import DisplayText
import FoundationEssentials
import Glibc
import Logging
import MobileAuth

/// A log handler that writes one line per event to standard error. Texts are sanitized: no line breaks, no terminal
/// control characters, at most 1000 Unicode scalars. Metadata is for the journal (`JournalLog`); the message says the
/// same.
struct PlainLog: LogHandler {
  let label: String
  var logLevel = Logger.Level.info
  var metadata: Logger.Metadata = [:]

  init(_ label: String) { self.label = label }

  subscript(metadataKey key: String) -> Logger.Metadata.Value? {
    get { metadata[key] }
    set { metadata[key] = newValue }
  }

  func log(event: LogEvent) {
    Self.write(Self.line(event.level, label, "[\(event.source)] \(event.message)", at: Date()))
  }

  static func line(_ level: Logger.Level, _ label: String, _ message: String, at moment: Date) -> String {
    "\(moment.formatted(.iso8601)) \(level) \(label): \(message)".sanitized(atMost: 1000)
  }

  private static func write(_ line: String) {
    let bytes = Array((line + "\n").utf8)
    _ = Glibc.write(2, bytes, bytes.count)
  }
}
