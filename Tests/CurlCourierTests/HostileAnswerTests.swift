// SPDX-License-Identifier: Apache-2.0
import Courier
import CurlCourier
import Testing

/// Tests with servers that violate the protocol. The client must not hang and must not accept the response.
@Suite("Hostile answers", .timeLimit(.minutes(5)))
struct HostileAnswerTests {
  let server: HostileServer
  let courier: CurlCourier

  init() throws {
    server = try HostileServer()
    courier = CurlCourier(trust: server.trust)
  }

  @Test(arguments: ["big", "big-chunks", "tiny-chunks"])
  func refusesABodyThatIsTooLarge(path: String) async throws {
    await #expect(throws: CourierError.tooLarge(limit: 1 << 20)) {
      try await courier.send(HTTPRequest(.get, server.url(path)))
    }
    try await expectCourierStillWorks()
  }

  @Test("The beginning of a body that is too large is available", arguments: ["big", "big-chunks"])
  func beginningOfLargeBody(path: String) async throws {
    var request = HTTPRequest(.get, server.url(path))
    request.takesBeginning = true
    let response = try await courier.send(request)
    #expect(response.isCut && response.body.count == 1 << 20)
    try await expectCourierStillWorks()
  }

  @Test(arguments: ["endless-head", "endless-head-line", "endless-interim", "endless-trailers"])
  func refusesAHeadThatIsTooLarge(path: String) async throws {
    await #expect(throws: CourierError.tooLarge(limit: 64 << 10)) {
      try await courier.send(HTTPRequest(.get, server.url(path)))
    }
    try await expectCourierStillWorks()
  }

  @Test func followsNoRedirect() async throws {
    let target = CourierError.redirected(to: "https://elsewhere.example/")
    await #expect(throws: target) { try await courier.send(HTTPRequest(.get, server.url("redirect"))) }
    await #expect(throws: target) { try await courier.stream(HTTPRequest(.get, server.url("redirect"))) }
    try await expectCourierStillWorks()
  }

  @Test(arguments: ["close", "reset", "nothing", "bad-chunk"])
  func saysWhenAConnectionBreaks(path: String) async throws {
    let failure = await #expect(throws: CourierError.self) {
      try await courier.send(HTTPRequest(.get, server.url(path)))
    }
    guard case .unreachable = failure else {
      Issue.record("\(String(describing: failure))")
      return
    }
    try await expectCourierStillWorks()
  }

  @Test(arguments: ["garbage", "cut-short", "big-until-close", "bad-status", "folded", "gzip"])
  func refusesWhatIsNotHTTP(path: String) async throws {
    let failure = await #expect(throws: CourierError.self) {
      try await courier.send(HTTPRequest(.get, server.url(path)))
    }
    guard case .malformed = failure else {
      Issue.record("\(String(describing: failure))")
      return
    }
    try await expectCourierStillWorks()
  }

  @Test(arguments: ["never", "half-head", "half-body", "drip", "endless-chunk-extension"])
  func keepsItsDeadline(path: String) async throws {
    let deadline = Duration.milliseconds(200)
    let start = ContinuousClock.now
    await #expect(throws: CourierError.timedOut(after: deadline)) {
      try await courier.send(HTTPRequest(.get, server.url(path), deadline: deadline))
    }
    #expect(ContinuousClock.now - start >= deadline)
    try await expectCourierStillWorks()
  }

  @Test func saysThatNobodyListens() async throws {
    let failure = await #expect(throws: CourierError.self) {
      try await courier.send(HTTPRequest(.get, "https://127.0.0.1:1/"))
    }
    guard case .unreachable(let reason) = failure else {
      Issue.record("\(String(describing: failure))")
      return
    }
    #expect(reason.contains("127.0.0.1 port 1"))
  }

  private func expectCourierStillWorks() async throws {
    #expect(try await courier.send(HTTPRequest(.get, server.url("status/204"))).status == 204)
  }
}
