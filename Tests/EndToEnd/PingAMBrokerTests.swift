// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import Foundation
import ProgramHarness
import TestAM
import TestAMServer
import Testing

extension EndToEnd {
  /// Push messages of PingAM over a real mosquitto, and the one-time passwords of `mfauth`.
  @Suite struct PingAMAtTheBroker {
    @Test("What is published is answered also what came while the token was off")
    func whatIsPublishedIsAnsweredAlsoWhatCameWhileTheTokenWasOff() async throws {
      try await withPingAMSceneAtBroker { fixture, broker in
        try await fixture.enroll("ann")
        let mailbox = try await fixture.mailbox(of: "ann")
        let pointer = try await broker.follow("\(mailbox)/presence")
        try await pointer.output.line(with: "approval-token/t")
        let topic = try #require(pointer.output.lines.first { $0.hasPrefix("approval-token/t") })
        let presence = try await broker.follow(topic)
        try await presence.output.line(with: "online")
        let mark = try fixture.token.log.mark
        let push = try #require(fixture.am.send("ann", .plain, timeout: 600))
        try await broker.publish(push, to: mailbox)
        try await fixture.accept(push, from: mark)
        // A repeated message is recognized; neither it nor an invalid message blocks others.
        try await broker.publish(push, to: mailbox)
        try await broker.publish("nonsense", to: mailbox)

        try await fixture.token.kill9()
        try await presence.output.line(with: "offline")
        let later = try #require(fixture.am.send("ann", .plain, timeout: 600))
        try await broker.publish(later, to: mailbox)
        try await broker.stop()
        try await broker.start()
        try await fixture.token.start()
        try await fixture.accept(later)
        #expect(try await fixture.token.pending().isEmpty)
      }
    }

    /// Two realms are two mechanisms with one topic each.
    @Test("A broker that is away is found again") func aBrokerThatIsAwayIsFoundAgain() async throws {
      try await withPingAMSceneAtBroker { fixture, broker in
        let beta = fixture.server.realm("beta", .am74)
        try await fixture.enroll("ann")
        try await fixture.enroll("ann", at: beta, as: "ann-beta")
        let mailboxes = [try await fixture.mailbox(of: "ann"), try await fixture.mailbox(of: "ann-beta")]
        try await fixture.token.log.line(with: "fetching push messages")

        let away = try fixture.token.log.mark
        try await broker.stop()
        try await fixture.token.log.line(with: "trying again in", from: away)
        let began = ContinuousClock.now
        try await Task.sleep(for: .seconds(15))
        let attempts = try fixture.token.log.lines.dropFirst(away).count { $0.contains("trying again in") }
        // One connection: pauses of at least 0.5, 1, 2, 4 and 8 s, and of at most twice these times.
        #expect(attempts >= 3, "\(attempts) attempts")
        if ContinuousClock.now - began < .seconds(20) { #expect(attempts <= 6, "\(attempts) attempts") }
        _ = try await eventually("two servers that cannot be heard") {
          try await fixture.token.status().servers.map(\.connection) == ["disconnected", "disconnected"] ? true : nil
        }
        try await fixture.token.shows("idle, not connected")
        // Nothing else is affected: messages can still be delivered over the control socket.
        let brought = try await fixture.login(by: .socket)
        try await fixture.token.answer(brought.token, with: .hold, from: brought.mark)
        #expect(try await fixture.ending(of: brought).hasPrefix("approved"))

        try await broker.start()
        for (realm, mailbox) in [(fixture.am, mailboxes[0]), (beta, mailboxes[1])] {
          let push = try #require(realm.send("ann", .plain, timeout: 600))
          let mark = try fixture.token.log.mark
          try await broker.publish(push, to: mailbox)
          try await fixture.accept(push, at: realm, from: mark, within: .seconds(150))
        }
        #expect(try await fixture.token.status().servers.map(\.connection) == ["connected", "connected"])
        try await fixture.token.shows("idle, connected")
      }
    }

    @Test("All mailboxes have one session, also after changes") func allMailboxesHaveOneSession() async throws {
      try await withPingAMSceneAtBroker { fixture, broker in
        let users = ["ann", "bob"]
        for user in users { try await fixture.enroll(user) }
        for user in users {
          try await fixture.token.command("mailbox", user, "--set", "tokens/of/the/second-floor/\(user)").succeeded()
        }
        for user in users {
          _ = try await eventually("the new mailbox of \(user) at AM") {
            fixture.am.profiles.first { $0.user == user }?.deviceID.hasSuffix("/\(user)") == true ? true : nil
          }
        }
        for user in users + users {
          let login = try await fixture.login(of: user)
          try await fixture.token.answer(login.token, with: .hold, from: login.mark)
          #expect(try await fixture.ending(of: login).hasPrefix("approved"))
        }
        #expect(try fixture.token.log.count(of: "another client has connected with the same client id") == 0)
        let clients = broker.log?.lines.compactMap {
          $0.firstMatch(of: /New client connected .* as (t[0-9a-f]{22})/)?.1
        }
        #expect(Set(try #require(clients)).count == 1)
      }
    }

    @Test("A locked account shows no code") func aLockedAccountShowsNoCode() async throws {
      try await withPingAMScene { fixture in
        let uri = fixture.am.registrationURI(
          "ann", oath: "secret=IBAUEQ2EIVDEOSCJJJFUYTKOJ5IFCUST", policies: #"{"deviceTampering":{"score":0.8}}"#)
        try await fixture.token.enroll(uri, name: "ann").succeeded()
        try await fixture.token.command("otp", "ann").succeeded()
        let refused = try await fixture.token.edited(in: fixture.folder).command("otp", "ann")
        #expect(refused.exit == .code(77) && refused.errors.contains("deviceTampering") && refused.output.isEmpty)
      }
    }

    /// Codes of RFC 4226, appendix D.
    @Test("One PIN serves both halves of a combined URI") func onePINServesBothHalvesOfACombinedURI() async throws {
      try await withPingAMScene { fixture in
        let oath = "secret=GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ&counter=0"
        let uri = fixture.am.registrationURI("ann", oath: oath).replacing("mfauth://totp", with: "mfauth://hotp")
        let enrollment = try fixture.token.begin("enroll", uri, "--name", "ann", "--ask-pin", "--json")
        try await fixture.token.choose("135792")
        try await enrollment.outcome().succeeded()
        #expect(fixture.am.finishRegistration(of: "ann") != nil)

        let first = try fixture.token.begin("otp", "ann")
        try await fixture.token.type("246813")
        try await fixture.token.type("135792")
        #expect(try await first.outcome().succeeded().output == "755224")

        let login = try await fixture.login(.biometric)
        try await fixture.token.type("246813", until: TestToken.pinWrong)
        try await fixture.token.type("135792")
        #expect(try await fixture.ending(of: login).hasPrefix("approved"))
        #expect(fixture.am.verify(login.push) == .isTrue)

        let change = try fixture.token.begin("pin", "change", "ann")
        try await fixture.token.type("135792")
        try await fixture.token.choose("975312")
        try await change.outcome().succeeded()
        try await fixture.token.stop()
        let alone = try await fixture.token.command("otp", "ann")
        #expect(alone.exit == .code(69) && alone.output.isEmpty && alone.errors.contains("PIN"))
        try await fixture.token.start()
        let second = try fixture.token.begin("otp", "ann")
        try await fixture.token.type("975312")
        #expect(try await second.outcome().succeeded().output == "287082")

        let pushOnly = try await fixture.token.command("enroll", fixture.am.registrationURI("bob"), "--ask-pin")
        #expect(pushOnly.exit == .code(64) && pushOnly.errors.contains("--ask-pin"))
        #expect(pushOnly.errors.contains("pin_for_biometric"))
      }
    }

    @Test("An account and a mailbox are enrolled once") func anAccountAndAMailboxAreEnrolledOnce() async throws {
      try await withPingAMScene { fixture in
        let secret = "secret=IBAUEQ2EIVDEOSCJJJFUYTKOJ5IFCUST"
        let ann = fixture.am.registrationURI("ann", oath: secret)
        try await fixture.token.command("enroll", ann, "--mailbox", "desk/ann").succeeded()
        #expect(fixture.am.finishRegistration(of: "ann")?.deviceID == "desk/ann")
        #expect(try await fixture.mailbox(of: "ann") == "desk/ann")
        for (uri, mailbox, why) in [
          (fixture.am.registrationURI("bob"), "desk/ann", "is the mailbox of the account \"ann\""),
          (fixture.am.registrationURI("bob"), "desk/+", "--mailbox takes"),
          ("otpauth://totp/Example:bob?\(secret)", "desk/bob", "--mailbox is for accounts of PingAM"),
        ] {
          let refused = try await fixture.token.command("enroll", uri, "--mailbox", mailbox)
          #expect(refused.exit == .code(64) && refused.errors.contains(why), "\(refused)")
        }

        let alone = try await fixture.token.enroll("otpauth://hotp/Example:ann?\(secret)", name: "second")
        #expect(
          alone.exit == .code(64) && alone.errors.contains(#"already enrolled here, as account \"ann\""#), "\(alone)")
        try await fixture.token.enroll("otpauth://hotp/Example:bob?\(secret)", name: "codes").succeeded()
        let both = try await fixture.token.enroll(fixture.am.registrationURI("bob", oath: secret), name: "second")
        #expect(both.exit == .code(77) && both.errors.contains(#"it is the account \"codes\""#), "\(both)")
        #expect(try await fixture.token.accounts().map(\.account) == ["ann", "codes"])
      }
    }

    @Test("A combined URI gives one time passwords too") func aCombinedURIGivesOneTimePasswordsToo() async throws {
      try await withPingAMScene { fixture in
        let oath = "secret=IBAUEQ2EIVDEOSCJJJFUYTKOJ5IFCUST&period=30&digits=6"
        try await fixture.token.enroll(fixture.am.registrationURI("ann", oath: oath), name: "ann").succeeded()
        #expect(fixture.am.finishRegistration(of: "ann") != nil)
        let code = try await fixture.token.command("otp", "ann").succeeded().output
        #expect(code.wholeMatch(of: /[0-9]{6}/) != nil)
        try await fixture.token.command("remove", "ann").succeeded()
        #expect(try await fixture.token.command("otp", "ann").exit == .code(64))
      }
    }
  }
}
