// SPDX-License-Identifier: Apache-2.0
import CurlHTTP
import HTTP
import Testing

/// Tests with servers that violate the protocol. The client must not hang and must not accept the response.
@Suite("Hostile answers", .timeLimit(.minutes(5)))
struct HostileAnswerTests {
  let server: HostileServer
  let http: CurlHTTPTransport

  init() throws {
    server = try HostileServer()
    http = CurlHTTPTransport(trust: server.trust)
  }

  @Test("Refuses a body that is too large", arguments: ["big", "big-chunks", "tiny-chunks"])
  func refusesABodyThatIsTooLarge(path: String) async throws {
    await #expect(throws: HTTPTransportError.tooLarge(limit: 1 << 20)) {
      try await http.send(HTTPRequest(.get, server.url(path)))
    }
    try await expectClientStillWorks()
  }

  @Test("The beginning of a body that is too large is available", arguments: ["big", "big-chunks"])
  func beginningOfLargeBody(path: String) async throws {
    var request = HTTPRequest(.get, server.url(path))
    request.takesBeginning = true
    let response = try await http.send(request)
    #expect(response.isTruncated && response.body.count == 1 << 20)
    try await expectClientStillWorks()
  }

  @Test(
    "Refuses a head that is too large",
    arguments: ["endless-head", "endless-head-line", "endless-interim", "endless-trailers"])
  func refusesAHeadThatIsTooLarge(path: String) async throws {
    await #expect(throws: HTTPTransportError.tooLarge(limit: 64 << 10)) {
      try await http.send(HTTPRequest(.get, server.url(path)))
    }
    try await expectClientStillWorks()
  }

  @Test("Follows no redirect") func followsNoRedirect() async throws {
    let target = HTTPTransportError.redirected(to: "https://elsewhere.example/")
    await #expect(throws: target) { try await http.send(HTTPRequest(.get, server.url("redirect"))) }
    await #expect(throws: target) { try await http.stream(HTTPRequest(.get, server.url("redirect"))) }
    try await expectClientStillWorks()
  }

  @Test("Says when a connection breaks", arguments: ["close", "reset", "nothing", "bad-chunk"])
  func saysWhenAConnectionBreaks(path: String) async throws {
    let failure = await #expect(throws: HTTPTransportError.self) {
      try await http.send(HTTPRequest(.get, server.url(path)))
    }
    guard case .unreachable = failure else {
      Issue.record("\(String(describing: failure))")
      return
    }
    try await expectClientStillWorks()
  }

  @Test(
    "Refuses what is not HTTP",
    arguments: [
      "garbage", "cut-short", "big-until-close", "bad-status", "folded", "gzip", "switching/1", "switching/70000",
      "switching/silent",
    ])
  func refusesWhatIsNotHTTP(path: String) async throws {
    let failure = await #expect(throws: HTTPTransportError.self) {
      try await http.send(HTTPRequest(.get, server.url(path)))
    }
    guard case .malformed = failure else {
      Issue.record("\(String(describing: failure))")
      return
    }
    try await expectClientStillWorks()
  }

  @Test("A stream that switches to another protocol ends", arguments: ["1", "70000", "silent"])
  func streamSwitches(sent: String) async throws {
    await #expect(throws: HTTPTransportError.self) {
      try await http.stream(HTTPRequest(.get, server.url("switching/\(sent)")))
    }
    try await expectClientStillWorks()
  }

  @Test("Keeps its deadline", arguments: ["never", "half-head", "half-body", "drip", "endless-chunk-extension"])
  func keepsItsDeadline(path: String) async throws {
    let deadline = Duration.milliseconds(200)
    let start = ContinuousClock.now
    await #expect(throws: HTTPTransportError.timedOut(after: deadline)) {
      try await http.send(HTTPRequest(.get, server.url(path), deadline: deadline))
    }
    #expect(ContinuousClock.now - start >= deadline)
    try await expectClientStillWorks()
  }

  @Test("Reports a port without a listener") func reportsAPortWithoutAListener() async throws {
    let failure = await #expect(throws: HTTPTransportError.self) {
      try await http.send(HTTPRequest(.get, "https://127.0.0.1:1/"))
    }
    guard case .unreachable(let reason) = failure else {
      Issue.record("\(String(describing: failure))")
      return
    }
    #expect(reason.contains("127.0.0.1 port 1"))
  }

  private func expectClientStillWorks() async throws {
    #expect(try await http.send(HTTPRequest(.get, server.url("status/204"))).status == 204)
  }
}
