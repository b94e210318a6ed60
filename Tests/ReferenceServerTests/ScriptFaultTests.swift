// SPDX-License-Identifier: Apache-2.0
import Cryptography
import Foundation
import OpenPGP
import ReferenceProtocol
import Secrets
import ServerTestSupport
import Testing
import TokenServerCore

/// Scripts of a custom authenticator that fail, and what an attacker could gain by that.
@Suite(.timeLimit(.minutes(5)), .mayBlock) struct ScriptFaultTests {
  let fixture: AuthenticatorFixture
  let device: DeviceClient
  var scripts: TestScripts { fixture.scripts }

  static let badge = AuthenticatorFixture.badge

  init() throws {
    // Some of these scripts use up their time.
    fixture = try AuthenticatorFixture(scriptTime: 20)
    device = fixture.device
  }

  @Test("Refused registrations are limited: without a limit, data could be guessed by registering")
  func refusedRegistrationsAreLimited() throws {
    try device.logInWithPIN().expect(200)
    try scripts.answer(status: 3000)
    for _ in 1...3 { #expect(try fixture.beginBadge().slug == .authenticatorError) }
    try scripts.answer(status: 4000)
    for _ in 1...2 { #expect(try fixture.beginBadge().slug == .customFailed) }
    let asked = try scripts.calls().count
    try scripts.answer(status: 2000)
    for _ in 1...2 {
      let refused = try fixture.beginBadge()
      #expect(refused.status == 429 && refused.slug == .rateLimited)
    }
    #expect(try scripts.calls().count == asked)
    #expect(try fixture.entry("badge")?.registered == false)
  }

  /// Fails without the limit: a device could fill the disk while a script cannot be run.
  @Test("Registrations whose script cannot be run leave a limited number of attempts") func openAttempts() throws {
    try device.logInWithPIN().expect(200)
    try scripts.answer(status: 3000)
    for _ in 1...(AuthenticatorAttempt.mostOpen + 4) {
      #expect(try fixture.beginBadge().slug == .authenticatorError)
    }
    #expect(try fixture.count("authenticator_attempt") == AuthenticatorAttempt.mostOpen)
  }

  /// Fails if the limit is not checked for attempts that are repeated: each would be a guess.
  @Test("Registrations that are repeated after a fault of the script are limited, too") func repeatedGuesses() throws {
    try device.logInWithPIN().expect(200)
    let ephemeral = try OpenPGPKey.generate(userID: "ephemeral")
    let guesses = try (1...4).map {
      (Random.uuid(), try device.registrationBody("badge", data: [UInt8($0)], ephemeral: ephemeral))
    }
    try scripts.answer(status: 3000)
    for (key, body) in guesses {
      #expect(try device.beginRegistration("badge", body, key: key).slug == .authenticatorError)
    }
    try scripts.answer(status: 4000)
    let slugs = try guesses.map { try device.beginRegistration("badge", $0.1, key: $0.0).slug }
    #expect(slugs == [.customFailed, .customFailed, .rateLimited, .rateLimited])
  }

  /// Fails if such a registration has no stored response: each could be a guess that the script's time tells.
  @Test("Registrations whose script gives no result are limited, too") func guessesWithoutResult() throws {
    try device.logInWithPIN().expect(200)
    let ephemeral = try OpenPGPKey.generate(userID: "ephemeral")
    let body = try device.registrationBody("badge", data: Self.badge, ephemeral: ephemeral)
    let key = Random.uuid()
    try scripts.answer("nonsense")
    for _ in 1...2 {
      let reply = try device.beginRegistration("badge", body, key: key)
      #expect(reply.status == 500 && reply.slug == .authenticatorError)
    }
    #expect(try scripts.calls().count == 1)
    #expect(try fixture.beginBadge().slug == .authenticatorError)
    #expect(try fixture.beginBadge().slug == .rateLimited)
    #expect(try scripts.calls().count == 2)
  }

  /// Fails if such attempts are given back: a script that is slow, or fails, for wrong data would be asked without end.
  @Test(
    "A script that is started and gives no result was asked: the attempt counts, and the limit deregisters",
    arguments: ["exit 1", "echo '{'", "sleep 60", "kill -9 $$"])
  func noResult(script: String) throws {
    let token = try fixture.registerBadge()
    try scripts.write("authenticate", "#!/bin/sh\ncat >>calls; echo >>calls\n\(script)\n")
    let assertion = try device.assertion("/oauth/token", by: "badge", token, data: Self.badge)
    for _ in 1...2 {
      let reply = try device.logIn(with: "badge", token, data: Self.badge, assertion: assertion)
      #expect(reply.status == 500 && reply.errorCode == 10000 && reply.json["authenticator_revoked"] == nil)
    }
    #expect(try scripts.calls().count { $0["step"] as? String == "authenticate" } == 1)
    let transaction = try fixture.pin.ask(device, type: "badge")
    let answer = try device.answer(device.fetch(transaction), with: "badge", token, data: Self.badge)
    let problem = try device.send(answer, to: transaction).expect(422).decoded(Problem.self)
    #expect(problem.slug == .customFailed && problem.authenticatorRevoked == true && problem.fallback == .pin)
    #expect(try fixture.entry("badge")?.registered == false)
  }

  @Test("An answer whose script gave no result is not sent to it again, and the request stays open")
  func answerWithoutResult() throws {
    let token = try fixture.registerBadge()
    let transaction = try fixture.pin.ask(device, type: "badge")
    let fetched = try device.fetch(transaction)
    let answer = try device.answer(fetched, with: "badge", token, data: Self.badge)
    let key = Random.uuid()
    try scripts.answer("{")
    for _ in 1...2 {
      let reply = try device.send(answer, to: transaction, key: key)
      #expect(reply.status == 500 && reply.slug == .authenticatorError)
      #expect((reply.json["custom_info"] as? [String: any Sendable])?["status"] as? Int == 3004)
    }
    #expect(try scripts.calls().count { $0["step"] as? String == "authenticate" } == 1)
    try scripts.answer(status: 2000)
    try device.send(answer, to: transaction).expect(200)
  }

  @Test("A script that cannot be run leaves the request open, and the PIN can approve it") func scriptFault() throws {
    let token = try fixture.registerBadge()
    let transaction = try fixture.pin.ask(device, type: "badge")
    let fetched = try device.fetch(transaction)
    let faults: [(String, Int, Int)] = [
      ("#!/bin/sh\nexit 1\n", 0o755, 3001), ("#!/bin/sh\necho '{'\n", 0o755, 3004), ("#!/bin/sh\n", 0o644, 3002),
      ("#!/no/such/interpreter\n", 0o755, 3001), ("#!/bin/sh\nsleep 60\n", 0o755, 3001),
      ("#!/bin/sh\nyes\n", 0o755, 3001),
    ]
    for (text, mode, status) in faults {
      // A success clears the count.
      try scripts.write("authenticate", "#!/bin/sh\ncat answer\n")
      try device.logIn(with: "badge", token, data: Self.badge).expect(200)
      try scripts.write("authenticate", text, mode: mode)
      let reply = try device.send(device.answer(fetched, with: "badge", token, data: Self.badge), to: transaction)
      #expect(reply.status == 500 && reply.slug == .authenticatorError, "\(text)")
      #expect((reply.json["custom_info"] as? [String: any Sendable])?["status"] as? Int == status, "\(text)")
    }
    try FileManager.default.removeItem(atPath: scripts.folder + "/authenticate")
    let missing = try device.send(device.answer(fetched, with: "badge", token, data: Self.badge), to: transaction)
    #expect((missing.json["custom_info"] as? [String: any Sendable])?["status"] as? Int == 3000)
    #expect(try fixture.entry("badge")?.registered == true)
    try device.send(device.answerWithFallback(fetched), to: transaction).expect(200)
  }
}
