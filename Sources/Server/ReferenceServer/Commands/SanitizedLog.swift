// SPDX-License-Identifier: Apache-2.0
import DisplayText
import Logging
import TokenServerCore

/// A log handler that sanitizes every line: one event is one line, and client data cannot contain terminal control
/// characters. Metadata is sanitized with the line, because each request has metadata, and few have a line.
struct SanitizedLog: LogHandler {
  private static let longestLine = 2000

  private var inner: any LogHandler
  var metadata: Logger.Metadata = [:]

  /// - Parameter inner: writes the lines; has no metadata of its own.
  init(_ inner: any LogHandler) { self.inner = inner }

  var logLevel: Logger.Level {
    get { inner.logLevel }
    set { inner.logLevel = newValue }
  }

  subscript(metadataKey key: String) -> Logger.Metadata.Value? {
    get { metadata[key] }
    set { metadata[key] = newValue }
  }

  func log(event: LogEvent) {
    var event = event
    event.message = "\(event.message.description.sanitized(atMost: Self.longestLine))"
    let all = metadata.merging(event.metadata ?? [:]) { _, new in new }
    event.metadata = all.isEmpty ? nil : all.mapValues(Self.sanitized)
    inner.log(event: event)
  }

  private static func sanitized(_ value: Logger.Metadata.Value) -> Logger.Metadata.Value {
    .string("\(value)".sanitized(atMost: longestLine))
  }
}
