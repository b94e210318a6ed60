// SPDX-License-Identifier: Apache-2.0
import Logging
import TokenServerCore

/// A log handler that sanitizes every line: one event is one line, and client data cannot contain terminal control
/// characters.
struct PrintableLog: LogHandler {
  private static let longestLine = 2000

  private var inner: any LogHandler

  init(_ inner: any LogHandler) { self.inner = inner }

  var logLevel: Logger.Level {
    get { inner.logLevel }
    set { inner.logLevel = newValue }
  }

  var metadata: Logger.Metadata {
    get { inner.metadata }
    set { inner.metadata = newValue.mapValues(Self.printable) }
  }

  subscript(metadataKey key: String) -> Logger.Metadata.Value? {
    get { inner[metadataKey: key] }
    set { inner[metadataKey: key] = newValue.map(Self.printable) }
  }

  func log(event: LogEvent) {
    var event = event
    event.message = "\(event.message.description.printable(atMost: Self.longestLine))"
    event.metadata = event.metadata?.mapValues(Self.printable)
    inner.log(event: event)
  }

  private static func printable(_ value: Logger.Metadata.Value) -> Logger.Metadata.Value {
    .string("\(value)".printable(atMost: longestLine))
  }
}
