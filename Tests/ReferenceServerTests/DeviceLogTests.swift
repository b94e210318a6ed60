// SPDX-License-Identifier: Apache-2.0
import Logging
import RecordedLog
import Synchronization
import Testing

@testable import TokenServerCore

@Suite(.timeLimit(.minutes(1)), .mayBlock) struct DeviceLogTests {
  private final class Time: Sendable {
    private let now = Mutex(Duration.zero)
    var uptime: Duration { now.withLock { $0 } }
    func pass(_ duration: Duration) { now.withLock { $0 += duration } }
  }

  @Test("A thousand lines about one device are limited, and those about others are not") func limited() {
    let (lines, time) = (RecordedLog(), Time())
    let log = DeviceLog(lines.logger) { time.uptime }
    for number in 1...1000 { log.about(ClientID("A")).info("line \(number)") }
    #expect(lines.all.count == DeviceLog.hourly + 1)
    #expect(lines.all.last?.hasPrefix("more than 240 lines about the device A in an hour") == true)
    log.about(ClientID("B")).info("other")
    #expect(lines.all.last == "other")
    time.pass(.seconds(3599))
    log.about(ClientID("A")).info("too early")
    #expect(lines.all.last == "other")
    time.pass(.seconds(1))
    log.about(ClientID("A")).info("later")
    #expect(lines.all.last == "later")
  }
}
