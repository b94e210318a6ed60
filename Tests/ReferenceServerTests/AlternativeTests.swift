// SPDX-License-Identifier: Apache-2.0
import ReferenceProtocol
import Secrets
import ServerTestSupport
import Testing

/// Requests that several authenticators can approve.
@Suite("Requests with alternatives", .timeLimit(.minutes(5)), .mayBlock) struct AlternativeTests {
  private let fixture: AuthenticatorFixture
  private let device: DeviceClient
  private static let types = """

    [[type]]
    name = "either"
    method = "push_with_fingerprint"
    request_expires_in = 600
    alternatives = ["badge"]
    [[type]]
    name = "either-only"
    method = "push_with_fingerprint"
    request_expires_in = 600
    alternatives = ["badge"]
    fallback = "none"
    """

  init() throws {
    fixture = try AuthenticatorFixture(Self.types)
    device = fixture.device
  }

  private func registerFinger() throws -> SecretBytes {
    try device.logInWithPIN().expect(200)
    return try device.registerAuthenticator("finger")
  }

  private func approve(
    _ transaction: String, with id: String, _ token: SecretBytes, as method: ApprovalRequest.Method,
    from former: ApprovalRequest.Method? = nil
  ) throws -> Curl.Reply {
    let data = id == "badge" ? AuthenticatorFixture.badge : nil
    let answer = try device.answer(device.fetch(transaction), with: id, token, data: data) {
      ($0.methodUsed, $0.fallbackFrom) = (method, former)
    }
    return try device.send(answer, to: transaction)
  }

  private func method(_ transaction: String) throws -> String? {
    try fixture.pin.result(transaction)["authentication_method"] as? String
  }

  private func state(_ transaction: String) throws -> RequestState {
    try device.call("GET", "/device/v1/requests/\(transaction)").decoded(RequestStatus.self).state
  }

  @Test("The finger or the badge approves, and the result says what was used") func either() throws {
    let (badge, finger) = (try fixture.registerBadge(), try registerFinger())
    let first = try fixture.pin.ask(device, type: "either")
    let request = try device.fetch(first).request
    #expect(request.method == .pushWithFingerprint && request.authenticator == "finger")
    #expect(request.alternatives == [.init(authenticator: "badge", method: .pushWithCustomAuthenticator)])
    #expect(request.fallbacks == ["push_with_pin"])
    try approve(
      first, with: "badge", badge, as: .pushWithCustomAuthenticator, from: .pushWithFingerprint
    ).expect(200)
    #expect(try method(first) == "push_with_custom_authenticator")
    #expect(try fixture.scripts.calls().last?["authenticator"] as? String == "badge")
    let second = try fixture.pin.ask(device, type: "either")
    try approve(second, with: "finger", finger, as: .pushWithFingerprint).expect(200)
    #expect(try method(second) == "push_with_fingerprint")
  }

  @Test("An answer with another method than that of its authenticator is refused, and no script is asked")
  func wrongMethod() throws {
    let (badge, finger) = (try fixture.registerBadge(), try registerFinger())
    let before = try fixture.scripts.calls().count
    // A badge in place of the finger, without data; a finger in place of the badge; another identifier.
    for (id, token, method) in [
      ("badge", badge, .pushWithFingerprint), ("finger", finger, .pushWithCustomAuthenticator),
      ("other", badge, .pushWithCustomAuthenticator), ("badge", badge, .push),
    ] as [(String, SecretBytes, ApprovalRequest.Method)] {
      let transaction = try fixture.pin.ask(device, type: "either")
      #expect(try approve(transaction, with: id, token, as: method).slug == .answerInvalid)
    }
    #expect(try fixture.scripts.calls().count == before)
    let login = try fixture.pin.ask(device, type: "touch")
    #expect(
      try approve(login, with: "badge", badge, as: .pushWithCustomAuthenticator, from: .pushWithFingerprint).slug
        == .answerInvalid)
  }

  @Test("Where only the alternative is registered, it is the request's authenticator; without any, there is no request")
  func onlyTheAlternative() throws {
    #expect(throws: (any Error).self) { try fixture.pin.ask(device, type: "either-only") }
    let badge = try fixture.registerBadge()
    let transaction = try fixture.pin.ask(device, type: "either-only")
    let request = try device.fetch(transaction).request
    #expect(request.method == .pushWithCustomAuthenticator && request.authenticator == "badge")
    #expect(request.alternatives == nil && request.fallbacks == nil)
    try approve(transaction, with: "badge", badge, as: .pushWithCustomAuthenticator).expect(200)
  }

  /// Without the check, the answer would wait for itself.
  @Test("A stored request that names an alternative twice can be answered") func namedTwice() throws {
    let badge = try fixture.registerBadge()
    _ = try registerFinger()
    let transaction = try fixture.pin.ask(device, type: "either")
    let alternative = #"{"authenticator":"badge","method":"push_with_custom_authenticator"}"#
    let request = TestDeployment.usesPostgreSQL ? "convert_from(request, 'UTF8')" : "CAST(request AS TEXT)"
    let doubled = "replace(\(request), '\(alternative)', '\(alternative),\(alternative)')"
    try fixture.server.query(
      """
      UPDATE mobile_auth_transaction SET request =
        \(TestDeployment.usesPostgreSQL ? "convert_to(\(doubled), 'UTF8')" : "CAST(\(doubled) AS BLOB)")
      WHERE id = '\(transaction)'
      """)
    #expect(try device.fetch(transaction).request.alternatives?.count == 2)
    try approve(transaction, with: "badge", badge, as: .pushWithCustomAuthenticator, from: .pushWithFingerprint)
      .expect(200)
  }

  @Test("A wrong token revokes the one that it is of; the other one approves, and after both the request has failed")
  func revocation() throws {
    let (badge, _) = (try fixture.registerBadge(), try registerFinger())
    let transaction = try fixture.pin.ask(device, type: "either-only")
    let problem = try approve(transaction, with: "finger", .wrong, as: .pushWithFingerprint).expect(422)
      .decoded(Problem.self)
    #expect(problem.slug == .biometricFailed && problem.authenticatorRevoked == true && problem.fallback == nil)
    #expect(problem.state == nil)
    #expect(try fixture.entry("finger")?.registered == false)
    let answer = try device.answer(
      device.fetch(transaction), with: "badge", badge, data: AuthenticatorFixture.badge, attempt: 2
    ) { ($0.methodUsed, $0.fallbackFrom) = (.pushWithCustomAuthenticator, .pushWithFingerprint) }
    try device.send(answer, to: transaction).expect(200)

    let last = try fixture.pin.ask(device, type: "either-only")
    let final = try approve(last, with: "badge", .wrong, as: .pushWithCustomAuthenticator).expect(422)
      .decoded(Problem.self)
    #expect(final.slug == .customFailed && final.state == .failed && final.nonce == nil)
    #expect(try fixture.pin.result(last)["is_authenticated"] as? Bool == false)
    #expect(try state(last) == .failed)
  }

  @Test("A deregistration ends a request only if nothing else can approve it") func deregistration() throws {
    _ = try fixture.registerBadge()
    _ = try registerFinger()
    let transaction = try fixture.pin.ask(device, type: "either-only")
    try device.call("DELETE", device.authenticatorPath("finger"), token: device.userToken).expect(204)
    #expect(try state(transaction) == .open)
    try device.call("DELETE", device.authenticatorPath("badge"), token: device.userToken).expect(204)
    #expect(try state(transaction) == .failed)
  }
}
