// SPDX-License-Identifier: Apache-2.0
import JSONValues
import Testing

@testable import BenchPage

@Suite(.timeLimit(.minutes(5))) struct AccessTests {
  private let access = Access(port: 4711)

  private func claims(_ change: (inout Access.Claims) -> Void = { _ in }) -> Access.Claims {
    var claims = Access.Claims(
      host: "127.0.0.1:4711", origin: "http://127.0.0.1:4711", site: "same-origin", cookie: nil)
    change(&claims)
    return claims
  }

  @Test("The page's own requests are admitted, and those of an address that a user opens") func own() throws {
    try access.checkOrigin(claims(), changes: true)
    try access.checkOrigin(claims { $0.origin = nil }, changes: false)
    try access.checkOrigin(claims { ($0.origin, $0.site) = (nil, "none") }, changes: false)
    try access.checkOrigin(claims { ($0.origin, $0.site) = (nil, nil) }, changes: false)
  }

  @Test(
    "Another name of this machine is another site: a page could choose it (DNS rebinding)",
    arguments: [
      nil, "", "localhost:4711", "127.0.0.1", "127.0.0.1:80", "evil.example:4711", "127.0.0.1:4711.evil.example",
    ])
  func hosts(host: String?) {
    #expect(throws: Access.AccessError.wrongHost) {
      try access.checkOrigin(claims { $0.host = host }, changes: false)
    }
  }

  @Test("At the default port of HTTP, browsers name neither the port in the host nor in the origin")
  func defaultPort() throws {
    let access = Access(port: 80)
    #expect(access.address.hasPrefix("http://127.0.0.1/#"))
    for host in ["127.0.0.1", "127.0.0.1:80"] {
      let own = claims { ($0.host, $0.origin) = (host, "http://127.0.0.1") }
      try access.checkOrigin(own, changes: true)
    }
    for host in ["localhost", "127.0.0.1:443", "127.0.0.1:4711", "evil.example"] {
      #expect(throws: Access.AccessError.wrongHost) {
        try access.checkOrigin(claims { ($0.host, $0.origin) = (host, "http://127.0.0.1") }, changes: true)
      }
    }
    // The default port of HTTPS is none of HTTP.
    #expect(throws: Access.AccessError.wrongHost) {
      try Access(port: 443).checkOrigin(claims { ($0.host, $0.origin) = ("127.0.0.1", nil) }, changes: false)
    }
  }

  @Test(
    "Pages of other origins are refused, also those of this machine",
    arguments: [
      "null", "", "https://127.0.0.1:4711", "http://127.0.0.1:4712", "http://localhost:4711", "http://evil.example",
    ])
  func origins(origin: String) {
    for changes in [false, true] {
      #expect(throws: Access.AccessError.wrongOrigin) {
        try access.checkOrigin(claims { $0.origin = origin }, changes: changes)
      }
    }
  }

  @Test("What changes something must name its origin") func missingOrigin() {
    for site in [nil, "none", "same-origin"] {
      #expect(throws: Access.AccessError.wrongOrigin) {
        try access.checkOrigin(claims { ($0.origin, $0.site) = (nil, site) }, changes: true)
      }
    }
  }

  @Test("The browser's own word about the site counts", arguments: ["cross-site", "same-site", "x"])
  func sites(site: String) {
    #expect(throws: Access.AccessError.wrongOrigin) {
      try access.checkOrigin(claims { ($0.origin, $0.site) = (nil, site) }, changes: false)
    }
  }

  @Test("The cookie of this bench is found among others, and no other value counts") func cookies() throws {
    let cookie = String(try #require(access.cookie.split(separator: ";").first))
    func check(_ cookie: String?, _ key: String?) throws {
      try access.checkSession(claims { ($0.cookie, $0.key) = (cookie, key) })
    }
    try check(cookie, access.key)
    try check("a=b; \(cookie); c=d", access.key)
    for key in [nil, "", access.token, "\(access.key)x", Access(port: 4711).key] {
      #expect(throws: Access.AccessError.noSession) { try check(cookie, key) }
    }
    let other = String(try #require(Access(port: 4711).cookie.split(separator: ";").first))
    for wrong in [nil, "", "a=b", "\(cookie)x", String(cookie.dropLast()), other, "approval-bench-4711=", "x\(cookie)"]
    {
      #expect(throws: Access.AccessError.noSession, "\(wrong ?? "none")") {
        try check(wrong, access.key)
      }
    }
    #expect(access.cookie.contains("HttpOnly") && access.cookie.contains("SameSite=Strict"))
  }

  @Test("A file or a link may open the page, and nothing else") func navigation() throws {
    let claims = claims { ($0.origin, $0.site, $0.isNavigation) = (nil, "cross-site", true) }
    try access.checkOrigin(claims, changes: false)
    #expect(throws: Access.AccessError.wrongOrigin) { try access.checkOrigin(claims, changes: true) }
  }

  @Test("Three secrets of 192 bits that are never equal") func secrets() {
    let other = Access(port: 4711)
    #expect(access.token.utf8.count == 32 && access.token != access.callbackToken && access.token != other.token)
    #expect(access.isToken(access.token) && !access.isToken(other.token) && !access.isToken(""))
    #expect(access.isCallbackToken(access.callbackToken) && !access.isCallbackToken(access.token))
    #expect(!access.cookie.contains(access.token))
  }
}
