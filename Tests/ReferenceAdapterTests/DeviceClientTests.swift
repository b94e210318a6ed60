import ApprovalTestKit
import Courier
import MobileAuth
import ReferenceProtocol
import Testing

@testable import ReferenceAdapter

@Suite struct DeviceClientTests {
  private let server: FakeServer

  init() throws { server = try FakeServer() }

  @Test func theFirstCallLearnsTheNonceAndTheTimeAndOneTokenServesMany() async throws {
    let courier = server.makeCourier()
    let client = server.client(courier)
    server.on("/x", "{}")
    for _ in 0..<3 { #expect(try await client.call(.get, "/x").status == 200) }
    #expect(server.tokensGiven == 1)
    // One refused token request to learn the nonce, one that works, three calls.
    #expect(courier.requests.count == 5)
    // The board believes it is 1970.
    #expect(await client.now == 1_795_219_200)
  }

  @Test func aStaleNonceCostsOneMoreRoundTrip() async throws {
    let client = server.client(server.makeCourier())
    server.on("/x", "{}")
    _ = try await client.call(.get, "/x")
    server.turnNonce()
    #expect(try await client.call(.get, "/x").status == 200)
  }

  @Test func aTokenIsRenewedBeforeItEndsAndWhenItIsRefused() async throws {
    let client = server.client(server.makeCourier())
    server.on("/x", "{}")
    _ = try await client.call(.get, "/x")
    server.timekeeper.advance(by: .seconds(869))
    _ = try await client.call(.get, "/x")
    #expect(server.tokensGiven == 1)
    server.timekeeper.advance(by: .seconds(1))
    _ = try await client.call(.get, "/x")
    #expect(server.tokensGiven == 2)
    server.on("/x") { request throws(CourierError) in
      request.headers["Authorization"] == "DPoP T3"
        ? HTTPResponse(status: 200)
        : HTTPResponse(status: 401, body: JSON.encode(Problem(.notAuthenticated, issuer: FakeServer.url)))
    }
    #expect(try await client.call(.get, "/x").status == 200)
  }

  @Test func aServerThatNeverIsContentIsGivenUpOn() async throws {
    let courier = server.makeCourier()
    let client = server.client(courier)
    server.on("/x") { [server] _ throws(CourierError) in
      server.turnNonce()
      return HTTPResponse(status: 401, headers: ["WWW-Authenticate": "DPoP error=\"use_dpop_nonce\""])
    }
    await #expect(throws: TokenServerFault.self) { try await client.call(.get, "/x") }
    #expect(courier.requests.count < 10)
  }

  @Test(arguments: [
    (Problem.Slug.deviceDeregistered, TokenServerFault.deviceDeregistered), (.userDeregistered, .userDeregistered),
    (.outdatedApp, .outdated("d")), (.outdatedOS, .outdated("d")), (.alreadyEnrolled, .alreadyEnrolled("d")),
    (.userAlreadyEnrolled, .alreadyEnrolled("d")), (.pushTokenInUse, .alreadyEnrolled("d")),
    (.enrolmentDisabled, .enrolmentDisabled("d")), (.featureDisabled, .enrolmentDisabled("d")),
    (.disenrolled, .disenrolled), (.notEnrolled, .notEnrolled), (.keysNotExchanged, .notEnrolled),
    (.invalidDatetime, .clockWrong), (.configurationInvalid, .configurationInvalid("d")),
    (.notFound, .requestNotFound), (.expired, .requestNotFound), (.answerInvalid, .answerInvalid("d")),
    (.invalidRequest, .answerInvalid("d")), (.idempotencyConflict, .answerInvalid("d")),
    (.rateLimited, .rateLimited(retryAfter: nil)),
    // Without the counts it is not the server's word.
    (.pinIncorrect, .unreachable("status 422 without an explanation we understand")), (.customFailed, .refused("d")),
    (.biometricFailed, .refused("d")), (.authenticatorDeregistered, .refused("d")),
    (.actionNotAllowed, .notAuthenticated("d")),
  ])
  func everyProblemIsAFault(slug: Problem.Slug, fault: TokenServerFault) async throws {
    let client = server.client(server.makeCourier())
    server.on("/x", problem: slug)
    await #expect(throws: fault) { try await client.call(.get, "/x") }
  }

  @Test(arguments: [
    (500, "<html>", TokenServerFault.unreachable("status 500 without an explanation we understand")),
    (403, "<html>proxy says no</html>", .unreachable("status 403 without an explanation we understand")),
    (
      404, #"{"type":"https://h/problems/brand-new","title":"","status":404,"code":1,"retryable":false}"#,
      .unreachable("status 404 without an explanation we understand")
    ),
    (429, "", .rateLimited(retryAfter: .seconds(7))),
  ])
  func whatIsNotTheServersOwnWordDecidesNothing(status: Int, body: String, fault: TokenServerFault) async throws {
    let client = server.client(server.makeCourier())
    server.on("/x", status: status, body, headers: ["Retry-After": "7"])
    await #expect(throws: fault) { try await client.call(.get, "/x") }
  }

  @Test(arguments: [
    (OAuthError("invalid_client", "gone", code: 9002), TokenServerFault.deviceDeregistered),
    (OAuthError("invalid_client", "late", code: 9031), .clockWrong),
    (OAuthError("invalid_client", "who"), .unreachable("the token server gives no access token: who")),
    (OAuthError("slow_down"), .rateLimited(retryAfter: nil)),
  ])
  func everyOAuthErrorIsAFault(error: OAuthError, fault: TokenServerFault) async throws {
    let client = server.client(server.makeCourier())
    server.on("/oauth/token") { _ in HTTPResponse(status: 401, body: JSON.encode(error)) }
    await #expect(throws: fault) { try await client.call(.get, "/x") }
  }

  @Test(arguments: [
    CourierError.unreachable("r"), .timedOut(after: .seconds(1)), .untrusted("pin"), .tooLarge(limit: 1),
    .redirected(to: "https://evil"), .malformed("m"),
  ])
  func everyCourierErrorLeavesTheOutcomeOpen(error: CourierError) async throws {
    let client = server.client(server.makeCourier())
    server.on("/x") { _ throws(CourierError) in throw error }
    await #expect(throws: TokenServerFault.unreachable(error.description)) { try await client.call(.get, "/x") }
  }
}
