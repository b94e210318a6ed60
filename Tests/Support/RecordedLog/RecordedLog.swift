// SPDX-License-Identifier: Apache-2.0
package import Logging
import Synchronization

/// The messages of a logger, for tests.
package final class RecordedLog: Sendable {
  private struct Handler: LogHandler {
    let log: RecordedLog
    var metadata: Logger.Metadata = [:]
    var logLevel = Logger.Level.info

    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
      get { metadata[key] }
      set { metadata[key] = newValue }
    }

    func log(event: LogEvent) { log.lines.withLock { $0.append("\(event.message)") } }
  }

  private let lines = Mutex<[String]>([])

  package init() {}

  package var all: [String] { lines.withLock { $0 } }
  package var logger: Logger { Logger(label: "test") { _ in Handler(log: self) } }
}
