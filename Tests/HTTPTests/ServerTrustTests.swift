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

  @Test("Requests go only to the origins that the trust names, if it names any") func origins() throws {
    let limited = ServerTrust().limited(to: ["https://Token.example:443/openid", "https://[2001:db8::1]:8443"])
    #expect(limited.origins == ["https://token.example", "https://[2001:db8::1]:8443"])
    for address in ["https://token.example/a", "https://TOKEN.example:443?a", "https://[2001:DB8::1]:8443/"] {
      try limited.check(HTTPRequest(.get, address))
    }
    let others = [
      "https://token.example:8443/", "https://token.example.org/", "https://other.example/token.example",
      "https://token.example@other.example/", "https://token.example\\@other.example/", "https://token.example%2e/",
      "https:///token.example", "https://", "http://token.example/", "token.example", "https://token.example /",
    ]
    for address in others {
      #expect(throws: HTTPTransportError.self, "\(address)") { try limited.check(HTTPRequest(.get, address)) }
      #expect(throws: HTTPTransportError.self) { try ServerTrust().limited(to: []).check(HTTPRequest(.get, address)) }
    }
    try ServerTrust().check(HTTPRequest(.get, "https://other.example/"))
    #expect(throws: HTTPTransportError.self) { try ServerTrust().check(HTTPRequest(.get, "http://other.example/")) }
  }
}
