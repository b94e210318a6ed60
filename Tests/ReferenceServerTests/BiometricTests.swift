// SPDX-License-Identifier: Apache-2.0
import Cryptography
import Foundation
import OpenPGP
import ReferenceProtocol
import Secrets
import ServerTestSupport
import Testing

/// A fingerprint: its registration, logins, answers, fallback and revocation.
@Suite(.timeLimit(.minutes(5)), .mayBlock) struct BiometricTests {
  let fixture: AuthenticatorFixture
  let device: DeviceClient

  init() throws {
    fixture = try AuthenticatorFixture()
    device = fixture.device
  }

  @Test("The list has what is registered, and what server and device support now") func list() throws {
    let all = try device.authenticators()
    #expect(all.map(\.identifier) == ["pin", "badge", "finger"])
    #expect(all.map(\.name) == ["PIN", "Company badge", "Fingerprint"])
    #expect(all.map(\.type) == [.pin, .custom, .biometric])
    #expect(all.map(\.registered) == [true, false, false] && all.map(\.supported) == [true, true, true])
    try device.announce(biometric: ["finger"])
    #expect(try device.authenticators().map(\.identifier) == ["pin", "finger"])
    _ = try device.registerAuthenticator("finger")
    #expect(try fixture.entry("finger")?.registered == true)
    // A reader that was unplugged: still registered.
    try device.announce()
    #expect(try fixture.entry("finger")?.registered == true && fixture.entry("finger")?.supported == false)
  }

  @Test("A registration needs a user and the PIN, and can be activated by its own token only") func registration()
    throws
  {
    let ephemeral = try OpenPGPKey.generate(userID: "ephemeral")
    let body = try device.registrationBody("finger", ephemeral: ephemeral)
    let asDevice = try device.call(
      "POST", device.authenticatorPath("finger") + "/registrations", body: body, token: device.deviceToken,
      headers: ["Idempotency-Key: \(Random.uuid())"])
    #expect(asDevice.status == 401)
    try device.logInWithPIN().expect(200)
    var withoutPIN = body
    withoutPIN.assertion = nil
    #expect(try device.beginRegistration("finger", withoutPIN).status == 400)
    let wrong = try device.beginRegistration(
      "finger", device.registrationBody("finger", pin: .wrong, ephemeral: ephemeral))
    #expect(wrong.status == 422 && wrong.slug == .pinIncorrect && wrong.counts == [3, 1, 2])

    let key = Random.uuid()
    let first = try device.beginRegistration("finger", body, key: key).expect(201)
      .decoded(AuthenticatorRegistration.self)
    #expect(first.registrationID == key && first.customInfo == nil && first.expiresInMs == 600_000)
    #expect(try device.registrationState("finger", key) == .pending)
    #expect(try fixture.entry("finger")?.registered == false)
    // The response was lost: the same registration with another token; the first one is void.
    let again = try device.beginRegistration("finger", body, key: key).expect(201)
      .decoded(AuthenticatorRegistration.self)
    let (former, token) = (try device.open(first, with: ephemeral), try device.open(again, with: ephemeral))
    #expect(former.exposed != token.exposed && again.registrationID == key)
    #expect(try device.failureCounts()?.previousFailureCount == 0)
    try device.activateRegistration("finger", key, token).expect(204)
    try device.activateRegistration("finger", key, token).expect(204)
    #expect(try device.registrationState("finger", key) == .registered)
    #expect(try fixture.entry("finger")?.registered == true)
    #expect(try device.beginRegistration("finger", body).slug == .authenticatorAlreadyRegistered)
    #expect(try device.beginRegistration("finger", body, key: key).slug == .authenticatorAlreadyRegistered)
  }

  @Test("A registration that another key activates is void") func wrongActivation() throws {
    try device.logInWithPIN().expect(200)
    let ephemeral = try OpenPGPKey.generate(userID: "ephemeral")
    let registration = try device.beginRegistration("finger", device.registrationBody("finger", ephemeral: ephemeral))
      .expect(201).decoded(AuthenticatorRegistration.self)
    let token = try device.open(registration, with: ephemeral)
    #expect(try device.activateRegistration("finger", registration.registrationID, .wrong).slug == .answerInvalid)
    #expect(try device.activateRegistration("finger", registration.registrationID, token).slug == .notFound)
    #expect(try device.registrationState("finger", registration.registrationID) == .void)
  }

  @Test("What cannot be registered says why, with the numbers of the catalog") func refusals() throws {
    try device.logInWithPIN().expect(200)
    let ephemeral = try OpenPGPKey.generate(userID: "ephemeral")
    func slug(_ id: String) throws -> Problem.Slug? {
      try device.beginRegistration(id, device.registrationBody(id, ephemeral: ephemeral)).slug
    }
    #expect(try slug("none") == .authenticatorInvalid)
    #expect(try slug("pin") == .authenticatorAlreadyRegistered)
    try device.announce(custom: ["badge"])
    #expect(try slug("finger") == .authenticatorNotSupported)
    let codes: [Problem.Slug: Int] = [
      .authenticatorAlreadyRegistered: 10004, .authenticatorNotSupported: 10006, .authenticatorNotRegistered: 10007,
      .pinNotRemovable: 10008, .customDisabled: 10020, .authenticatorInvalid: 9015, .authenticatorDeregistered: 9022,
      .customFailed: 9027, .biometricFailed: 9030,
    ]
    for (slug, code) in codes { #expect(slug.code == code) }
  }

  @Test("A finger logs in, and a wrong token deregisters it at once") func login() throws {
    let token = try device.registerAuthenticator("finger")
    let cursor = try device.events(after: nil)?.cursor
    let assertion = try device.assertion("/oauth/token", by: "finger", token)
    for _ in 1...2 {
      let response = try device.logIn(with: "finger", token, assertion: assertion).expect(200)
        .decoded(AccessTokenResponse.self)
      #expect(response.scope == .user && response.profileID == "PROF01" && response.customInfo == nil)
    }
    try device.enrollForPush().expect(200)
    // The PIN's own token is not the finger's, and this is no PIN attempt.
    let wrong = try device.logIn(with: "finger", #require(device.refreshToken))
    #expect(wrong.status == 400 && wrong.errorCode == 9030 && wrong.json["authenticator_revoked"] as? Bool == true)
    #expect(
      try device.events(after: cursor)?.events
        == [DeviceEvent(.authenticatorRevoked, profileID: "PROF01", authenticator: "finger")])
    #expect(try device.logIn(with: "finger", token).errorCode == 9022)
    #expect(try fixture.entry("finger")?.registered == false)
    #expect(try device.failureCounts()?.previousFailureCount == 0)
    try device.logInWithPIN().expect(200)
    // It can be registered again, with another token.
    let second = try device.registerAuthenticator("finger")
    #expect(second.exposed != token.exposed)
    try device.logIn(with: "finger", second).expect(200)
  }

  @Test("What is no attempt is not counted as one") func noAttempt() throws {
    let token = try device.registerAuthenticator("finger")
    let changes: [@Sendable (inout KnowledgeAssertion.Claims) -> Void] = [
      { $0.iss = "x" }, { $0.sub = "OTHER1" }, { $0.aud += "/x" }, { $0.jti = "" }, { $0.nonce = "x" },
      { $0.authenticator = nil }, { $0.authenticator = "badge" }, { $0.dataSHA256 = "x" }, { $0.exp += 3600 },
    ]
    for change in changes {
      let assertion = try device.assertion("/oauth/token", by: "finger", .wrong, change: change)
      #expect(try device.logIn(with: "finger", token, assertion: assertion).status == 400)
    }
    // The assertion of the PIN is not one of the finger, nor the other way round.
    #expect(try device.logIn(with: "finger", token, assertion: device.assertion("/oauth/token")).errorCode == 10015)
    let finger = try device.assertion("/oauth/token", by: "finger", token)
    #expect(try device.logInWithPIN(assertion: finger).errorCode == 10015)
    try device.logIn(with: "finger", token).expect(200)
  }

  @Test("A finger approves, with its own proof") func approval() throws {
    let token = try device.registerAuthenticator("finger")
    let transaction = try fixture.pin.ask(device, type: "touch")
    let fetched = try device.fetch(transaction)
    #expect(fetched.request.method == .pushWithFingerprint && fetched.request.authenticator == "finger")
    #expect(fetched.request.fallbacks == ["push_with_pin"] && fetched.request.attempt == 1)
    #expect(fetched.request.maxFailureCount == 3)
    let answer = try device.answer(fetched, with: "finger", token)
    let status = try device.send(answer, to: transaction, key: "5b0d5d1c-96a1-4b8c-9a52-59d3a9d0ff01").expect(200)
      .decoded(RequestStatus.self)
    #expect(status.state == .authenticated && status.sealedReceipt != nil && status.customInfo == nil)
    #expect(
      try device.send(answer, to: transaction, key: "5b0d5d1c-96a1-4b8c-9a52-59d3a9d0ff01").expect(200)
        .decoded(RequestStatus.self) == status)
    let result = try fixture.pin.result(transaction)
    #expect(result["authentication_method"] as? String == "push_with_fingerprint")
    #expect(result["used_authentication_attempts"] == nil)
  }

  @Test("A wrong finger token deregisters the finger, and the PIN approves the same request") func fallback() throws {
    let token = try device.registerAuthenticator("finger")
    let transaction = try fixture.pin.ask(device, type: "touch")
    let only = try fixture.pin.ask(device, type: "touch-only")
    let fetched = try device.fetch(transaction)
    let wrong = try device.send(device.answer(fetched, with: "finger", .wrong), to: transaction).expect(422)
    let problem = try wrong.decoded(Problem.self)
    #expect(problem.slug == .biometricFailed && problem.authenticatorRevoked == true && problem.fallback == .pin)
    #expect(try fixture.entry("finger")?.registered == false)
    // A request that only the finger can approve has failed.
    #expect(try fixture.pin.result(only).reason == "invalid_request")
    #expect(try device.send(device.answer(fetched, with: "finger", token), to: transaction).slug != nil)
    let open = try fixture.pin.result(transaction)
    #expect(open["is_authenticated"] as? Bool == false && open.reason == nil)
    // The fallback took no PIN attempt.
    #expect(try device.failureCounts()?.previousFailureCount == 0)
    let mistyped = try device.send(
      device.answerWithFallback(fetched, .wrong, attempt: 2, nonce: problem.nonce), to: transaction
    ).expect(422)
    #expect(mistyped.slug == .pinIncorrect && mistyped.counts == [3, 1, 2])
    let nonce = try mistyped.decoded(Problem.self).nonce
    try device.send(device.answerWithFallback(fetched, attempt: 3, nonce: nonce), to: transaction).expect(200)
    let result = try fixture.pin.result(transaction)
    #expect(result["is_authenticated"] as? Bool == true)
    #expect(result["authentication_method"] as? String == "push_with_pin")
    #expect(result["used_authentication_attempts"] as? Int == 2)
  }

  @Test("A request without a fallback ends with the wrong finger token") func noFallback() throws {
    _ = try device.registerAuthenticator("finger")
    let transaction = try fixture.pin.ask(device, type: "touch-only")
    let fetched = try device.fetch(transaction)
    #expect(fetched.request.fallbacks == nil && fetched.request.maxFailureCount == nil)
    // The PIN cannot replace it.
    let refused = try device.send(device.answerWithFallback(fetched), to: transaction)
    #expect(refused.status == 422 && refused.slug == .answerInvalid)
    let wrong = try device.send(device.answer(fetched, with: "finger", .wrong), to: transaction).expect(422)
    #expect(wrong.slug == .biometricFailed && wrong.json["fallback"] == nil && wrong.json["nonce"] == nil)
    let result = try fixture.pin.result(transaction)
    #expect(result.reason == "invalid_answer")
    #expect(result["authentication_method"] as? String == "push_with_fingerprint")
  }

  @Test("A user without a registered finger is asked for the PIN instead, also on a token of an earlier version")
  func unregistered() throws {
    let transaction = try fixture.pin.ask(device, type: "touch")
    let fetched = try device.fetch(transaction)
    #expect(fetched.request.method == .pushWithPIN && fetched.request.authenticator == nil)
    #expect(fetched.request.fallbacks == nil)
    try device.send(device.answerWithPIN(fetched), to: transaction).expect(200)
    #expect(try fixture.pin.result(transaction)["authentication_method"] as? String == "push_with_pin")
  }

  @Test("Answers that mix methods are invalid and count nowhere") func mixedAnswers() throws {
    let token = try device.registerAuthenticator("finger")
    let transaction = try fixture.pin.ask(device, type: "touch")
    let fetched = try device.fetch(transaction)
    let changes: [@Sendable (inout ApprovalAnswer) -> Void] = [
      { $0.methodUsed = .push }, { $0.methodUsed = .pushWithCustomAuthenticator }, { $0.authenticator = "badge" },
      { $0.authenticator = nil }, { $0.authenticatorProof = nil }, { $0.fallbackFrom = .pushWithFingerprint },
      { $0.methodUsed = .other("push_with_iris") }, { $0.fallbackFrom = .other("push_with_iris") },
    ]
    for change in changes.prefix(4) {
      let answer = try device.answer(fetched, with: "finger", .wrong, change: change)
      #expect(try device.send(answer, to: transaction).slug == .answerInvalid)
    }
    #expect(try fixture.entry("finger")?.registered == true)
    try device.send(device.answer(fetched, with: "finger", token), to: transaction).expect(200)
    let second = try fixture.pin.ask(device, type: "touch")
    let other = try device.fetch(second)
    for change in changes.dropFirst(4) {
      let answer = try device.answer(other, with: "finger", .wrong, change: change)
      #expect(try device.send(answer, to: second).slug == .answerInvalid)
    }
    #expect(try fixture.entry("finger")?.registered == true)
  }

  @Test("A deregistration is the user's, and cannot remove the PIN") func deregistration() throws {
    let token = try device.registerAuthenticator("finger")
    let path = device.authenticatorPath("finger")
    let only = try fixture.pin.ask(device, type: "touch-only")
    #expect(try device.call("DELETE", path, token: device.deviceToken).status == 401)
    #expect(
      try device.call("DELETE", device.authenticatorPath("pin"), token: device.userToken).slug == .pinNotRemovable)
    #expect(
      try device.call("DELETE", device.authenticatorPath("x"), token: device.userToken).slug == .authenticatorInvalid)
    for _ in 1...2 {
      try device.call("POST", path + "/deregistration", body: AuthenticatorDeregistration(), token: device.userToken)
        .expect(204)
    }
    #expect(try fixture.pin.result(only).reason == "invalid_request")
    #expect(try device.logIn(with: "finger", token).errorCode == 9022)
    #expect(try fixture.count("authenticator") == 0)
  }

  @Test("With the user, the authenticators are gone") func deletedWithTheUser() throws {
    let token = try device.registerAuthenticator("finger")
    try device.call("DELETE", "/device/v1/profiles/PROF01").expect(204)
    #expect(try fixture.count("authenticator") == 0)
    #expect(try device.logIn(with: "finger", token).errorCode == 9003)
  }

  @Test("A registration survives a kill of the server at each step") func kill() throws {
    try device.logInWithPIN().expect(200)
    let ephemeral = try OpenPGPKey.generate(userID: "ephemeral")
    let (key, body) = (Random.uuid(), try device.registrationBody("finger", ephemeral: ephemeral))
    let registration = try device.beginRegistration("finger", body, key: key).expect(201)
      .decoded(AuthenticatorRegistration.self)
    _ = fixture.server.stop(killing: true)
    let after = try PINFixture(after: fixture.pin)
    let token = try device.open(registration, with: ephemeral)
    try device.activateRegistration("finger", key, token).expect(204)
    #expect(try device.registrationState("finger", key) == .registered)
    try device.logIn(with: "finger", token).expect(200)
    withExtendedLifetime(after) {}
  }
}

extension [String: any Sendable] {
  var reason: String? { (self["not_authenticated_reason"] as? [String: any Sendable])?["reason"] as? String }
}
