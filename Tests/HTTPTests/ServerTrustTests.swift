// SPDX-License-Identifier: Apache-2.0
import HTTP
import Testing

/// The time for certificate validation on boards whose clock is not set.
@Suite(.timeLimit(.minutes(5))) struct ServerTrustTests {
  private let release: Int64 = 1_795_219_200
  private let farFuture: Int64 = 253_402_300_799

  /// Fails if a server's time is used although the board's own clock is synchronized.
  @Test("A server's time is used only while the board's clock is not set")
  func serversWordCountsOnlyWithoutClock() {
    let trust = ServerTrust(earliestNow: release, vouchedNow: farFuture)
    #expect(trust.floor(boardTime: release + 1, isSynchronized: true) == release)
    #expect(trust.floor(boardTime: release - 1, isSynchronized: true) == farFuture)
    #expect(trust.floor(boardTime: release + 1, isSynchronized: false) == farFuture)
    #expect(ServerTrust(earliestNow: release, vouchedNow: 5).floor(boardTime: 0, isSynchronized: false) == release)
  }
}
