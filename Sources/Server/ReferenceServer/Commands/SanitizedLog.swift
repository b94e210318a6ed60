// SPDX-License-Identifier: Apache-2.0
import DisplayText
import Logging
import TokenServerCore

/// A log handler that sanitizes every line: one event is one line, and client data cannot contain terminal control
/// characters.
struct SanitizedLog: LogHandler {
  private static let longestLine = 2000

  private var inner: any LogHandler

  init(_ inner: any LogHandler) { self.inner = inner }

  var logLevel: Logger.Level {
    get { inner.logLevel }
    set { inner.logLevel = newValue }
  }

  var metadata: Logger.Metadata {
    get { inner.metadata }
    set { inner.metadata = newValue.mapValues(Self.sanitized) }
  }

  subscript(metadataKey key: String) -> Logger.Metadata.Value? {
    get { inner[metadataKey: key] }
    set { inner[metadataKey: key] = newValue.map(Self.sanitized) }
  }

  func log(event: LogEvent) {
    var event = event
    event.message = "\(event.message.description.sanitized(atMost: Self.longestLine))"
    event.metadata = event.metadata?.mapValues(Self.sanitized)
    inner.log(event: event)
  }

  private static func sanitized(_ value: Logger.Metadata.Value) -> Logger.Metadata.Value {
    .string("\(value)".sanitized(atMost: longestLine))
  }
}
