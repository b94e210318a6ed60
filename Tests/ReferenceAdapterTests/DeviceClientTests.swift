// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import HTTP
import MobileAuth
import ReferenceProtocol
import Synchronization
import Testing

@testable import ReferenceAdapter

@Suite(.timeLimit(.minutes(5))) struct DeviceClientTests {
  private let server: FakeServer

  init() throws { server = try FakeServer() }

  @Test("The first call learns the nonce and the time and one token serves many")
  func theFirstCallLearnsTheNonceAndTheTimeAndOneTokenServesMany() async throws {
    let http = server.makeHTTPTransport()
    let client = server.client(http)
    server.on("/x", "{}")
    for _ in 0..<3 { #expect(try await client.call(.get, "/x").status == 200) }
    #expect(server.tokensGiven == 1)
    // One refused token request to learn the nonce, one that works, three calls.
    #expect(http.requests.count == 5)
    // The board's clock is not set.
    #expect(await client.now == 1_795_219_200)
  }

  @Test("A stale nonce costs one more round trip") func aStaleNonceCostsOneMoreRoundTrip() async throws {
    let client = server.client(server.makeHTTPTransport())
    server.on("/x", "{}")
    _ = try await client.call(.get, "/x")
    server.turnNonce()
    #expect(try await client.call(.get, "/x").status == 200)
  }

  @Test("A token is renewed before it ends and when it is refused") func aTokenIsRenewedBeforeItEndsAndWhenItIsRefused()
    async throws
  {
    let client = server.client(server.makeHTTPTransport())
    server.on("/x", "{}")
    _ = try await client.call(.get, "/x")
    server.clock.advance(by: .seconds(869))
    _ = try await client.call(.get, "/x")
    #expect(server.tokensGiven == 1)
    server.clock.advance(by: .seconds(1))
    _ = try await client.call(.get, "/x")
    #expect(server.tokensGiven == 2)
    server.on("/x") { request throws(HTTPTransportError) in
      request.headers["Authorization"] == "DPoP T3"
        ? HTTPResponse(status: 200)
        : HTTPResponse(status: 401, body: JSON.encode(Problem(.notAuthenticated, issuer: FakeServer.url)))
    }
    #expect(try await client.call(.get, "/x").status == 200)
  }

  /// After a database restore or a revocation of the tokens, both calls are refused with their shared token, and the
  /// second finds it already replaced. Fails if that counts as a final refusal.
  @Test("Two concurrent calls survive an access token that the server no longer knows", .timeLimit(.minutes(1)))
  func twoCallsOutliveUnknownToken() async throws {
    let http = RendezvousHTTPTransport(server.makeHTTPTransport())
    let client = DeviceClient(
      issuer: FakeServer.url, clientID: FakeServer.clientID, key: server.deviceKey, http: http,
      in: server.environment)
    server.on("/known", "{}")
    _ = try await client.call(.get, "/known")
    server.on("/x") { request throws(HTTPTransportError) in
      request.headers["Authorization"] == "DPoP T1"
        ? HTTPResponse(status: 401, body: JSON.encode(Problem(.notAuthenticated, issuer: FakeServer.url)))
        : HTTPResponse(status: 200)
    }
    async let one = client.call(.get, "/x")
    async let other = client.call(.get, "/x")
    let statuses = try await [one.status, other.status]
    #expect(statuses == [200, 200])
  }

  @Test("A new access token that is refused ends the call and is not requested again")
  func refusedFreshTokenStops() async throws {
    let client = server.client(server.makeHTTPTransport())
    server.on("/x", problem: .notAuthenticated)
    await #expect(throws: TokenServerError.notAuthenticated("d")) { try await client.call(.get, "/x") }
    #expect(server.tokensGiven == 1)
    await #expect(throws: TokenServerError.notAuthenticated("d")) { try await client.call(.get, "/x") }
    #expect(server.tokensGiven == 2)
  }

  @Test("A server time after the certificate's expiry is not trusted")
  func timeBeyondCertificateIsNotVouchedFor() async throws {
    for (expiry, vouched) in [(nil, nil), (1_795_219_199, nil), (1_795_219_200, 1_795_219_200)] as [(Int64?, Int64?)] {
      let client = server.client(server.makeHTTPTransport())
      server.on("/x") { _ in
        var response = HTTPResponse(status: 200)
        response.certificateExpiry = expiry
        return response
      }
      #expect(await client.vouchedTime == nil)
      _ = try await client.call(.get, "/x")
      #expect(await client.vouchedTime == vouched)
    }
  }

  @Test("A server that never is content is given up on") func aServerThatNeverIsContentIsGivenUpOn() async throws {
    let http = server.makeHTTPTransport()
    let client = server.client(http)
    server.on("/x") { [server] _ throws(HTTPTransportError) in
      server.turnNonce()
      return HTTPResponse(status: 401, headers: ["WWW-Authenticate": "DPoP error=\"use_dpop_nonce\""])
    }
    await #expect(throws: TokenServerError.self) { try await client.call(.get, "/x") }
    #expect(http.requests.count < 10)
  }

  @Test(
    "Every problem is a fault",
    arguments: [
      (Problem.Slug.deviceDeregistered, TokenServerError.deviceDeregistered), (.userDeregistered, .userDeregistered),
      (.outdatedApp, .outdated("d")), (.outdatedOS, .outdated("d")), (.alreadyEnrolled, .alreadyEnrolled("d")),
      (.userAlreadyEnrolled, .userAlreadyEnrolled("d")), (.pushTokenInUse, .alreadyEnrolled("d")),
      (.enrollmentDisabled, .enrollmentDisabled("d")), (.featureDisabled, .enrollmentDisabled("d")),
      (.disenrolled, .disenrolled), (.notEnrolled, .notEnrolled), (.keysNotExchanged, .notEnrolled),
      (.invalidDatetime, .clockWrong), (.configurationInvalid, .configurationInvalid("d")),
      (.notFound, .requestNotFound), (.expired, .requestNotFound), (.answerInvalid, .answerInvalid("d")),
      (.invalidRequest, .answerInvalid("d")), (.idempotencyConflict, .answerInvalid("d")),
      (.rateLimited, .rateLimited(retryAfter: nil)),
      // Without the counts, the response is not the server's.
      (.pinIncorrect, .unreachable("status 422 without a known error message")),
      (.customFailed, .authenticatorFailed(AuthenticatorFailure(number: 9027, reason: "d", isRevoked: false))),
      (.biometricFailed, .authenticatorFailed(AuthenticatorFailure(number: 9030, reason: "d", isRevoked: false))),
      (
        .authenticatorDeregistered,
        .authenticatorFailed(AuthenticatorFailure(number: 9022, reason: "d", isRevoked: true))
      ),
      (.actionNotAllowed, .notAuthenticated("d")),
    ])
  func everyProblemIsAFault(slug: Problem.Slug, fault: TokenServerError) async throws {
    let client = server.client(server.makeHTTPTransport())
    server.on("/x", problem: slug)
    await #expect(throws: fault) { try await client.call(.get, "/x") }
  }

  /// Fails if the data is shortened as a text for display is: its meaning is the script's.
  @Test("The result of a script reaches programs whole, and its failure says whether the request has ended")
  func scriptResult() async throws {
    let client = server.client(server.makeHTTPTransport())
    let data = String(repeating: "{\"a\":1}\n", count: 512)
    #expect(data.utf8.count == 4096)
    for state in [RequestState.failed, nil] {
      var problem = Problem(.customFailed, issuer: "https://h", detail: "d", state: state)
      problem.customInfo = CustomInfo(status: 5000, data: data)
      server.on("/x", status: 422, String(decoding: JSON.encode(problem), as: UTF8.self))
      let failure = AuthenticatorFailure(
        number: 9027, reason: "d", info: AuthenticatorInfo(status: 5000, data: data), isRevoked: false,
        endsRequest: state != nil)
      await #expect(throws: TokenServerError.authenticatorFailed(failure)) { try await client.call(.get, "/x") }
      #expect(!failure.description.contains("\n") && failure.description.count < 300)
    }
    #expect(AuthenticatorInfo(CustomInfo(status: 2000, data: data + "more")).data.unicodeScalars.count == 4096)
  }

  @Test(
    "What is not the servers own word decides nothing",
    arguments: [
      (500, "<html>", TokenServerError.unreachable("status 500 without a known error message")),
      (403, "<html>proxy says no</html>", .unreachable("status 403 without a known error message")),
      (
        404, #"{"type":"https://h/problems/brand-new","title":"","status":404,"code":1,"retryable":false}"#,
        .unreachable("status 404 without a known error message")
      ),
      (429, "", .rateLimited(retryAfter: .seconds(7))),
    ])
  func whatIsNotTheServersOwnWordDecidesNothing(status: Int, body: String, fault: TokenServerError) async throws {
    let client = server.client(server.makeHTTPTransport())
    server.on("/x", status: status, body, headers: ["Retry-After": "7"])
    await #expect(throws: fault) { try await client.call(.get, "/x") }
  }

  @Test(
    "Every OAuth error is a fault",
    arguments: [
      (OAuthError("invalid_client", "gone", code: 9002), TokenServerError.deviceDeregistered),
      (OAuthError("invalid_client", "late", code: 9031), .clockWrong),
      (
        OAuthError("invalid_client", "who"),
        .configurationInvalid("it does not accept this device's client credentials (who)")
      ),
      (OAuthError("invalid_request", "who"), .unreachable("the token server gives no access token: who")),
      (OAuthError("slow_down"), .rateLimited(retryAfter: nil)),
    ])
  func everyOAuthErrorIsAFault(error: OAuthError, fault: TokenServerError) async throws {
    let client = server.client(server.makeHTTPTransport())
    server.on("/oauth/token") { _ in HTTPResponse(status: 401, body: JSON.encode(error)) }
    await #expect(throws: fault) { try await client.call(.get, "/x") }
  }

  /// Fails if the device asks for ever with credentials that the server does not accept.
  @Test("Client credentials that are refused twice stop the server; one refusal is retried", arguments: [1, 2])
  func refusedCredentials(refusals: Int) async throws {
    let http = server.makeHTTPTransport()
    let client = server.client(http)
    let asked = Counter()
    server.on("/oauth/token") { _ in
      let isRefused = asked.increment() <= refusals
      return HTTPResponse(
        status: isRefused ? 401 : 200,
        body: isRefused
          ? JSON.encode(OAuthError("invalid_client", "used before"))
          : JSON.encode(AccessTokenResponse(accessToken: "T", expiresIn: 900, scope: .device)))
    }
    server.on("/x", "{}")
    do {
      _ = try await client.call(.get, "/x")
      #expect(refusals == 1)
    } catch {
      #expect(refusals == 2 && error.number == 10001 && error.effect == .stop)
    }
    #expect(asked.increment() == 3)
  }

  @Test(
    "Every transport error leaves the outcome open",
    arguments: [
      HTTPTransportError.unreachable("r"), .noNetwork("n"), .timedOut(after: .seconds(1)), .untrusted("pin"),
      .tooLarge(limit: 1),
      .redirected(to: "https://evil"), .malformed("m"),
    ])
  func everyTransportErrorLeavesTheOutcomeOpen(error: HTTPTransportError) async throws {
    let client = server.client(server.makeHTTPTransport())
    server.on("/x") { _ throws(HTTPTransportError) in throw error }
    let fault: TokenServerError =
      switch error {
      case .untrusted: .untrusted(error.description)
      case .noNetwork: .noNetwork(error.description)
      default: .unreachable(error.description)
      }
    #expect(fault.number == (error == .noNetwork("n") ? 9000 : 9001))
    #expect(fault.effect == .retry)
    await #expect(throws: fault) { try await client.call(.get, "/x") }
  }
}

/// Delays the first two requests for `/x` until both have arrived.
private final class RendezvousHTTPTransport: HTTPTransport {
  private let http: RecordingHTTPTransport
  private let arrived = Mutex(0)

  init(_ http: RecordingHTTPTransport) { self.http = http }

  func send(_ request: HTTPRequest) async throws(HTTPTransportError) -> HTTPResponse {
    if request.url.hasSuffix("/x") { try await meet() }
    return try await http.send(request)
  }

  func stream(_ request: HTTPRequest) async throws(HTTPTransportError) -> HTTPResponseStream {
    try await http.stream(request)
  }

  private func meet() async throws(HTTPTransportError) {
    arrived.withLock { $0 += 1 }
    do {
      try await eventually("both requests for /x", within: .seconds(45)) { arrived.withLock { $0 } >= 2 }
    } catch {
      throw .unreachable("\(error)")
    }
  }
}
