// SPDX-License-Identifier: Apache-2.0
import Foundation
import Glibc
import Logging
import ReferenceProtocol

/// A log handler that writes each event to standard error as a JSON object on one line: `time` (RFC 3339, UTC, with
/// milliseconds), `level`, `logger`, `message`, and `metadata` if there is any.
struct JSONLog: LogHandler {
  let label: String
  var logLevel = Logger.Level.info
  var metadata: Logger.Metadata = [:]

  init(label: String) { self.label = label }

  subscript(metadataKey key: String) -> Logger.Metadata.Value? {
    get { metadata[key] }
    set { metadata[key] = newValue }
  }

  private struct Line: Encodable {
    let time: String
    let level: String
    let logger: String
    let message: String
    let metadata: [String: String]?
  }

  func log(event: LogEvent) {
    let line = line(event, at: Date())
    // One write: lines of other threads and processes do not mix with it.
    line.withUnsafeBytes { _ = Glibc.write(STDERR_FILENO, $0.baseAddress, $0.count) }
  }

  func line(_ event: LogEvent, at time: Date) -> [UInt8] {
    let all = metadata.merging(event.metadata ?? [:]) { _, new in new }
    let line = Line(
      time: time.formatted(Date.ISO8601FormatStyle(includingFractionalSeconds: true)), level: event.level.rawValue,
      logger: label, message: "\(event.message)", metadata: all.isEmpty ? nil : all.mapValues { "\($0)" })
    return JSON.encode(line) + [0x0A]
  }
}
