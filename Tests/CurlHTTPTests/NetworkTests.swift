// SPDX-License-Identifier: Apache-2.0
import CCurl
import Glibc
import HTTP
import Testing

@testable import CurlHTTP

@Suite(.timeLimit(.minutes(1))) struct NetworkTests {
  private func error(_ result: CURLcode, errno: Int32 = 0, hasNetwork: Bool) -> HTTPTransportError {
    TransferFailure(result: result, text: "t", certificateError: 0, isHeadComplete: false, systemError: errno)
      .httpTransportError(
        for: HTTPRequest(.get, "https://token.example"), trust: ServerTrust(), hasNetwork: { hasNetwork })
  }

  /// Fails if a board without a network reports that the server is not reachable.
  @Test("A machine without a network differs from a server that is not reachable") func noNetwork() {
    #expect(error(CURLE_COULDNT_RESOLVE_HOST, hasNetwork: false) == .noNetwork("t"))
    #expect(error(CURLE_COULDNT_RESOLVE_HOST, hasNetwork: true) == .unreachable("t"))
    for errno in [ENETUNREACH, ENETDOWN] {
      #expect(error(CURLE_COULDNT_CONNECT, errno: errno, hasNetwork: false) == .noNetwork("t"))
      #expect(error(CURLE_COULDNT_CONNECT, errno: errno, hasNetwork: true) == .unreachable("t"))
    }
    for errno in [0, ECONNREFUSED, EHOSTUNREACH] {
      #expect(error(CURLE_COULDNT_CONNECT, errno: errno, hasNetwork: false) == .unreachable("t"))
    }
    #expect(error(CURLE_RECV_ERROR, errno: ENETUNREACH, hasNetwork: false) == .unreachable("t"))
  }

  @Test(
    "A link-local address is no network",
    arguments: [
      ("169.254.1.2", false), ("169.253.255.255", true), ("169.255.0.0", true), ("192.0.2.1", true),
      ("fe80::1", false), ("febf::1", false), ("fec0::1", true), ("fd00::1", true), ("2001:db8::1", true),
    ])
  func linkLocal(text: String, isUsable usable: Bool) throws {
    var hints = addrinfo()
    hints.ai_flags = AI_NUMERICHOST
    var first: UnsafeMutablePointer<addrinfo>?
    try #require(getaddrinfo(text, nil, &hints, &first) == 0)
    defer { freeaddrinfo(first) }
    #expect(isUsable(UnsafePointer(try #require(first?.pointee.ai_addr))) == usable)
  }

  @Test("The interfaces of this machine can be read") func interfaces() { _ = hasNetworkInterface() }
}
