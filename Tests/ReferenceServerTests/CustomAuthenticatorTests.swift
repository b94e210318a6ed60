// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import Cryptography
import Foundation
import OpenPGP
import ReferenceProtocol
import Secrets
import ServerTestSupport
import Testing

/// A custom authenticator and its scripts, which run as processes of the server.
@Suite(.timeLimit(.minutes(5)), .mayBlock) struct CustomAuthenticatorTests {
  let fixture: AuthenticatorFixture
  let device: DeviceClient
  var scripts: TestScripts { fixture.scripts }

  static let badge = AuthenticatorFixture.badge

  init() throws {
    fixture = try AuthenticatorFixture()
    device = fixture.device
  }

  private func begin(key: String = Random.uuid()) throws -> Curl.Reply { try fixture.beginBadge(key: key) }

  private func registered() throws -> SecretBytes { try fixture.registerBadge() }

  @Test("The registration script gets data, user and attempt, and its result reaches the device") func registration()
    throws
  {
    try device.logInWithPIN().expect(200)
    try scripts.answer(status: 2001, data: "welcome", registrationData: "card 7")
    let key = Random.uuid()
    let registration = try begin(key: key).expect(201).decoded(AuthenticatorRegistration.self)
    #expect(registration.customInfo == CustomInfo(status: 2001, data: "welcome"))
    let call = try #require(try scripts.calls().first)
    #expect(call["step"] as? String == "register" && call["purpose"] as? String == "registration")
    #expect(call["user_id"] as? String == "alice" && call["profile_id"] as? String == "PROF01")
    #expect(call["authenticator"] as? String == "badge" && call["client_id"] as? String == device.clientID)
    #expect(call["data"] as? String == Self.badge.base64 && call["nonce"] as? String == key)
    #expect((call["attempt_id"] as? String)?.isEmpty == false && call["iss"] as? String == fixture.server.url)
    let challenge = AuthenticatorChallenge(
      for: .registration, issuer: fixture.server.url, clientID: device.clientID, profileID: "PROF01",
      authenticator: "badge", nonce: key)
    #expect(call["challenge"] as? String == challenge.digest.base64URL)
  }

  @Test(
    "The status decides what the registration's response is",
    arguments: [
      (2999, 201, nil), (4000, 422, .customFailed), (4001, 409, .authenticatorAlreadyRegistered),
      (4002, 404, .authenticatorNotRegistered), (5000, 422, .customFailed), (3000, 500, .authenticatorError),
      (1999, 500, .authenticatorError), (6000, 500, .authenticatorError),
    ] as [(Int, Int, Problem.Slug?)])
  func registrationStatus(status: Int, http: Int, slug: Problem.Slug?) throws {
    try device.logInWithPIN().expect(200)
    try scripts.answer(status: status, data: "why")
    let reply = try begin()
    #expect(reply.status == http && reply.slug == slug)
    let known = (2000...5999).contains(status)
    let info = reply.json["custom_info"] as? [String: any Sendable]
    #expect(info?["status"] as? Int == (known ? status : 3004))
    #expect(info?["data"] as? String == (known ? "why" : ""))
    #expect(try fixture.entry("badge")?.registered == false)
  }

  @Test("A repeated registration does not ask the script again; after a fault it does, with the same attempt")
  func repeatedRegistration() throws {
    try device.logInWithPIN().expect(200)
    let ephemeral = try OpenPGPKey.generate(userID: "ephemeral")
    let body = try device.registrationBody("badge", data: Self.badge, ephemeral: ephemeral)
    let key = Random.uuid()
    try scripts.answer(status: 3000)
    for _ in 1...2 { #expect(try device.beginRegistration("badge", body, key: key).slug == .authenticatorError) }
    let attempts = try scripts.calls().map { $0["attempt_id"] as? String }
    #expect(attempts.count == 2 && attempts[0] != nil && attempts[0] == attempts[1])
    try scripts.answer(status: 2000, registrationData: "card 7")
    for _ in 1...2 { try device.beginRegistration("badge", body, key: key).expect(201) }
    #expect(try scripts.calls().count == 3)
    let other = try device.registrationBody("badge", data: [1], ephemeral: ephemeral)
    #expect(try device.beginRegistration("badge", other, key: key).slug == .idempotencyConflict)
    #expect(try fixture.count("authenticator_attempt") == 0)
  }

  @Test("A login sends the script what the registration stored") func login() throws {
    let token = try registered()
    try scripts.answer(status: 2000, data: "hello")
    let assertion = try device.assertion("/oauth/token", by: "badge", token, data: Self.badge, identifier: "j1")
    for _ in 1...2 {
      let response = try device.logIn(with: "badge", token, data: Self.badge, assertion: assertion).expect(200)
        .decoded(AccessTokenResponse.self)
      #expect(response.customInfo == CustomInfo(status: 2000, data: "hello"))
    }
    let calls = try scripts.calls().filter { $0["step"] as? String == "authenticate" }
    #expect(calls.count == 1)
    #expect(calls[0]["registration_data"] as? String == "card 7" && calls[0]["purpose"] as? String == "login")
    #expect(calls[0]["nonce"] as? String == "j1" && calls[0]["data"] as? String == Self.badge.base64)
    // Data that the assertion does not name reaches no script.
    let other = try device.token([
      "grant_type=\(Grant.customAuthenticator)", "profile_id=PROF01", "authenticator=badge", "data=AAAA",
      "assertion=\(try device.assertion("/oauth/token", by: "badge", token, data: Self.badge))",
    ])
    #expect(other.errorCode == 10015)
    #expect(try device.logIn(with: "badge", token).errorCode == 10015)
  }

  @Test("4000 may be tried again until the limit, 5000 deregisters at once") func loginStatus() throws {
    let token = try registered()
    func attempt() throws -> Curl.Reply { try device.logIn(with: "badge", token, data: Self.badge) }
    try scripts.answer(status: 4000, data: "not this one")
    let failed = try attempt()
    #expect(failed.status == 400 && failed.errorCode == 9027 && failed.json["authenticator_revoked"] == nil)
    #expect((failed.json["custom_info"] as? [String: any Sendable])?["data"] as? String == "not this one")
    // A success clears the count.
    try scripts.answer(status: 2000)
    try attempt().expect(200)
    // What could not be run does not count.
    try scripts.answer(status: 3001)
    for _ in 1...3 {
      let fault = try attempt()
      #expect(fault.status == 500 && fault.errorCode == 10000)
    }
    try scripts.answer(status: 4000)
    #expect(try attempt().json["authenticator_revoked"] == nil)
    let last = try attempt()
    #expect(last.errorCode == 9027 && last.json["authenticator_revoked"] as? Bool == true)
    #expect(try attempt().errorCode == 9022)
    let second = try registered()
    try scripts.answer(status: 5000, data: "stolen")
    let final = try device.logIn(with: "badge", second, data: Self.badge)
    #expect(final.errorCode == 9027 && final.json["authenticator_revoked"] as? Bool == true)
    #expect(try fixture.entry("badge")?.registered == false)
    #expect(try device.failureCounts()?.previousFailureCount == 0)
  }

  @Test("An approval with a badge carries the script's result, and its input is bound to the request") func approval()
    throws
  {
    let token = try registered()
    try scripts.answer(status: 2002, data: "door 3")
    let transaction = try fixture.pin.ask(device, type: "badge")
    let fetched = try device.fetch(transaction)
    #expect(fetched.request.method == .pushWithCustomAuthenticator && fetched.request.authenticator == "badge")
    let answer = try device.answer(fetched, with: "badge", token, data: Self.badge)
    let status = try device.send(answer, to: transaction).expect(200).decoded(RequestStatus.self)
    #expect(status.customInfo == CustomInfo(status: 2002, data: "door 3"))
    let call = try #require(try scripts.calls().last)
    #expect(call["purpose"] as? String == "push" && call["transaction_id"] as? String == transaction)
    #expect(call["nonce"] as? String == fetched.request.nonce && call["decision"] as? String == "accept")
    #expect(call["request_sha256"] as? String == SHA256.hash(fetched.bytes).base64URL)
    var challenge = AuthenticatorChallenge(
      for: .push, issuer: fixture.server.url, clientID: device.clientID, profileID: "PROF01", authenticator: "badge",
      nonce: try #require(call["nonce"] as? String))
    challenge.transactionID = transaction
    challenge.decision = "accept"
    challenge.requestSHA256 = try #require(call["request_sha256"] as? String)
    challenge.messageSHA256 = AuthenticatorChallenge.digest(ofMessage: nil)
    #expect(call["challenge"] as? String == challenge.digest.base64URL)
    #expect(call["message_sha256"] as? String == SHA256.hash([]).base64URL && call["type"] as? String == "badge")
    #expect(
      try fixture.pin.result(transaction)["authentication_method"] as? String == "push_with_custom_authenticator")
  }

  @Test("After 4000 the badge may be tried again, or the PIN") func retry() throws {
    let token = try registered()
    try scripts.answer(status: 4000, data: "again")
    let transaction = try fixture.pin.ask(device, type: "badge")
    var fetched = try device.fetch(transaction)
    let key = Random.uuid()
    let answer = try device.answer(fetched, with: "badge", token, data: Self.badge)
    for _ in 1...2 {
      let problem = try device.send(answer, to: transaction, key: key).expect(422).decoded(Problem.self)
      #expect(problem.slug == .customFailed && problem.fallback == .pin && problem.authenticatorRevoked == nil)
      #expect(problem.customInfo == CustomInfo(status: 4000, data: "again") && problem.nonce != nil)
    }
    #expect(try scripts.calls().count { $0["step"] as? String == "authenticate" } == 1)
    // A fetch after the failed attempt has the next nonce and attempt.
    fetched = try device.fetch(transaction)
    #expect(fetched.request.attempt == 2)
    try scripts.answer(status: 2000)
    try device.send(device.answer(fetched, with: "badge", token, data: Self.badge, attempt: 2), to: transaction)
      .expect(200)
  }

  @Test("A wrong custom token in a push deregisters the badge, and no script is asked") func wrongToken() throws {
    _ = try registered()
    let transaction = try fixture.pin.ask(device, type: "badge")
    let fetched = try device.fetch(transaction)
    let before = try scripts.calls().count
    let problem = try device.send(device.answer(fetched, with: "badge", .wrong, data: Self.badge), to: transaction)
      .expect(422).decoded(Problem.self)
    #expect(problem.slug == .customFailed && problem.authenticatorRevoked == true && problem.customInfo == nil)
    #expect(try scripts.calls().count == before)
    try device.send(device.answerWithFallback(fetched, attempt: 2, nonce: problem.nonce), to: transaction).expect(200)
  }

  @Test("Without both scripts, an authenticator is not offered, and its requests want the PIN") func noScripts() throws
  {
    try FileManager.default.removeItem(atPath: scripts.folder + "/authenticate")
    try device.logInWithPIN().expect(200)
    #expect(try fixture.entry("badge") == nil)
    let refused = try begin()
    #expect(refused.status == 403 && refused.slug == .authenticatorNotSupported)
    #expect(try scripts.calls().isEmpty)

    try scripts.write("authenticate", "#!/bin/sh\ncat answer\n")
    _ = try registered()
    #expect(try fixture.entry("badge")?.supported == true)
    try scripts.write("register", "#!/bin/sh\n", mode: 0o644)
    let entry = try fixture.entry("badge")
    #expect(entry?.registered == true && entry?.supported == false && entry?.name == "Company badge")
    let transaction = try fixture.pin.ask(device, type: "badge")
    #expect(try device.fetch(transaction).request.method == .pushWithPIN)
  }

  @Test("Bad data reaches no script", arguments: ["!", String(repeating: "A", count: 8000)])
  func badData(text: String) throws {
    let token = try registered()
    let before = try scripts.calls().count
    let transaction = try fixture.pin.ask(device, type: "badge")
    let answer = try device.answer(device.fetch(transaction), with: "badge", token, data: Self.badge) {
      $0.customData = text
    }
    #expect(try device.send(answer, to: transaction).slug == .answerInvalid)
    let login = try device.token([
      "grant_type=\(Grant.customAuthenticator)", "profile_id=PROF01", "authenticator=badge", "data=\(text)",
      "assertion=\(try device.assertion("/oauth/token", by: "badge", token, data: []))",
    ])
    #expect(login.status == 400)
    #expect(try scripts.calls().count == before)
  }

  @Test("A script does not outlive the server") func end() async throws {
    let token = try registered()
    let transaction = try fixture.pin.ask(device, type: "badge")
    let answer = try device.answer(device.fetch(transaction), with: "badge", token, data: Self.badge)
    try scripts.write("authenticate", "#!/bin/sh\necho $$ >number.new\nmv number.new number\nexec sleep 600\n")
    Thread.detachNewThread { [device] in _ = try? device.send(answer, to: transaction) }
    let script: pid_t = try await eventually("the script runs") {
      (try? String(contentsOfFile: scripts.folder + "/number", encoding: .utf8)).flatMap { pid_t($0.dropLast()) }
    }
    #expect(fixture.server.stop() == 0)
    try await eventually("the script is gone") { ScriptProcessTests.isGone(script) ? () : nil }
  }

  @Test("After a kill of the server during the script, the same answer asks it with the same attempt") func kill()
    throws
  {
    let token = try registered()
    let transaction = try fixture.pin.ask(device, type: "badge")
    let answer = try device.answer(device.fetch(transaction), with: "badge", token, data: Self.badge)
    let key = Random.uuid()
    try scripts.write("authenticate", "#!/bin/sh\ncat >>calls; echo >>calls\nkill -9 $PPID\nsleep 5\n")
    #expect(throws: (any Error).self) { try device.send(answer, to: transaction, key: key) }
    _ = fixture.server.stop(killing: true)
    let after = try PINFixture(after: fixture.pin)
    try scripts.write("authenticate", "#!/bin/sh\ncat >>calls; echo >>calls\ncat answer\n")
    try scripts.answer(status: 2000)
    try device.logIn().expect(200)
    try device.send(answer, to: transaction, key: key).expect(200)
    let attempts = try scripts.calls().filter { $0["step"] as? String == "authenticate" }.map {
      $0["attempt_id"] as? String
    }
    #expect(attempts.count == 2 && attempts[0] != nil && attempts[0] == attempts[1])
    withExtendedLifetime(after) {}
  }
}
