// SPDX-License-Identifier: Apache-2.0
import CurlHTTP
import HTTP
import Testing

/// Tests with a server that prefers HTTP/2, and follows or violates it. Its behavior is selected by a request's body.
@Suite("HTTP/2", .timeLimit(.minutes(5)))
struct HTTP2Tests {
  let server: HostileServer
  let http: CurlHTTPTransport

  init() throws {
    server = try HostileServer(.good, .http2)
    http = CurlHTTPTransport(trust: server.trust)
  }

  private func ask(_ what: String, deadline: Duration = .seconds(30)) async throws(HTTPTransportError) -> HTTPResponse {
    try await http.send(HTTPRequest(.post, server.url(""), body: Array(what.utf8), deadline: deadline))
  }

  private func text(_ what: String) async throws -> String {
    String(decoding: try await ask(what).body, as: UTF8.self)
  }

  @Test("Requests at the same time share one connection") func sharesOneConnection() async throws {
    #expect(try await text("connections") == "1")
    async let one = text("meet")
    async let other = text("meet")
    #expect(try await [one, other] == ["met", "met"])
    for _ in 0..<200 { #expect(try await ask("status 204").status == 204) }
    #expect(try await text("connections") == "1")
  }

  @Test("Hands every status over", arguments: [200, 204, 304, 400, 401, 404, 500, 599])
  func handsEveryStatusOver(status: Int) async throws {
    #expect(try await ask("status \(status)").status == status)
  }

  @Test(
    "Reads a response with all that may be around it",
    arguments: [
      ("no-length", "ends with a flag"), ("interim", "after a hint"), ("trailers", "ok"), ("go-away", "the last one"),
    ])
  func readsAResponse(what: String, body: String) async throws {
    let response = try await ask(what)
    #expect(response.status == 200 && response.body == Array(body.utf8))
    #expect(response.headers["X-Interim"] == nil && response.headers["X-Trailer"] == nil)
    try await expectClientStillWorks()
  }

  /// A stream whose task does not read is paused, and must not stop the others.
  @Test("A stream has a connection of HTTP/1.1") func streamHasItsOwn() async throws {
    #expect(try await text("connections") == "1")
    let stream = try await http.stream(HTTPRequest(.get, server.url("firehose")))
    let stalled = try await http.stream(HTTPRequest(.get, server.url("await/stalled")))
    for try await _ in stalled.body { break }
    #expect(try await text("no-length") == "ends with a flag")
    withExtendedLifetime(stream) {}
  }

  @Test("Follows no redirect") func followsNoRedirect() async throws {
    await #expect(throws: HTTPTransportError.redirected(to: "https://elsewhere.example/")) { try await ask("redirect") }
    try await expectClientStillWorks()
  }

  @Test("Refuses what is too large") func refusesWhatIsTooLarge() async throws {
    await #expect(throws: HTTPTransportError.tooLarge(limit: 1 << 20)) { try await ask("big") }
    try await expectClientStillWorks()
  }

  @Test(
    "Says when a response is incomplete",
    arguments: ["reset", "short", "close", "close-without-length"])
  func saysWhenAResponseIsIncomplete(what: String) async throws {
    try await expectUnreachable(what)
  }

  @Test(
    "A violation of the protocol ends the connection, and nothing else",
    arguments: [
      "endless-head", "endless-interim", "endless-trailers", "garbage", "bad-status", "upper-case", "push", "pings",
      "settings",
      "empty-data",
    ])
  func violation(what: String) async throws {
    let failure = await #expect(throws: HTTPTransportError.self) { try await ask(what, deadline: .seconds(2)) }
    switch failure {
    case .unreachable, .malformed, .tooLarge, .timedOut: break
    default: Issue.record("\(String(describing: failure))")
    }
    try await expectClientStillWorks()
  }

  /// A connection that has silently died must not fail the requests that come after the first one.
  @Test("Keeps its deadline, and then makes a new connection", arguments: ["never", "half-body"])
  func keepsItsDeadline(what: String) async throws {
    let deadline = Duration.milliseconds(200)
    await #expect(throws: HTTPTransportError.timedOut(after: deadline)) { try await ask(what, deadline: deadline) }
    #expect(try await text("connections") == "2")
  }

  @Test("A server that accepts no request does not make it repeat without end") func abandon() async throws {
    let failure = await #expect(throws: HTTPTransportError.self) { try await ask("abandon", deadline: .seconds(5)) }
    guard case .unreachable = failure else {
      Issue.record("\(String(describing: failure))")
      return
    }
    try await expectClientStillWorks()
  }

  private func expectUnreachable(_ what: String) async throws {
    let failure = await #expect(throws: HTTPTransportError.self) { try await ask(what, deadline: .seconds(5)) }
    guard case .unreachable = failure else {
      Issue.record("\(String(describing: failure))")
      return
    }
    try await expectClientStillWorks()
  }

  private func expectClientStillWorks() async throws {
    #expect(try await ask("status 204").status == 204)
  }
}
