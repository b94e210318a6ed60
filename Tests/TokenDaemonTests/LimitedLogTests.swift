// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import Logging
import MobileAuth
import Synchronization
import Testing

@testable import TokenDaemon

@Suite(.timeLimit(.minutes(5))) struct LimitedLogTests {
  private final class Lines: Sendable {
    private let state = Mutex<[String]>([])
    var all: [String] { state.withLock { $0 } }
    func add(_ line: String) { state.withLock { $0.append(line) } }
  }

  private struct Handler: LogHandler {
    let lines: Lines
    var metadata: Logger.Metadata = [:]
    var logLevel = Logger.Level.info

    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
      get { metadata[key] }
      set { metadata[key] = newValue }
    }

    func log(event: LogEvent) { lines.add("\(event.message)") }
  }

  /// Fails if a client that may publish at the broker fills the log.
  @Test("A thousand warnings about one subject are some lines and a count") func limited() {
    let (clock, lines) = (ManualClock(), Lines())
    let log = LimitedLog(Logger(label: "test") { _ in Handler(lines: lines) }, clock: clock)
    let subject = TokenEvent.dropped("forged").subject
    for number in 1...1000 { log.report("dropped: \(number)", about: subject) }
    log.report("another", about: "another subject")
    #expect(lines.all.count == LimitedLog.hourly + 2)
    #expect(lines.all.suffix(2).last == "another")
    #expect(lines.all[LimitedLog.hourly].hasPrefix("more than 60 lines about \(subject) in an hour"))
    clock.advance(by: .seconds(3600))
    log.report("dropped: last", about: subject)
    #expect(
      lines.all.suffix(2) == ["940 more lines about \(subject) were omitted in the hour before", "dropped: last"])
  }
}
