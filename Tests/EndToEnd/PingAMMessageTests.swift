// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import Foundation
import ProgramHarness
import TestAM
import TestAMServer
import Testing

extension EndToEnd {
  /// Error cases of messages and answers.
  @Suite struct PingAMMessages {
    @Test("What waits is shown", arguments: Carrier.allCases)
    func whatWaitsIsShown(by carrier: Carrier) async throws {
      struct Context: Decodable { let remoteIp: String }
      struct Shown: Decodable {
        let account: String
        let type: String
        let message: String
        let context: Context
        let payload: [String: String]
        let sentAtMs: Int64
      }
      try await withPingAMScene(by: carrier) { fixture in
        try await fixture.enroll("ann")
        let login = try await fixture.login()
        let shown: [Shown] = try await fixture.token.command("pending", "--json").succeeded().decoded()
        let request = try #require(shown.first)
        #expect(request.account == "ann" && request.type == "push" && request.payload.isEmpty)
        #expect(request.message == "Login attempt from ann at Example")
        #expect(request.context.remoteIp == "198.51.100.7" && request.sentAtMs > 1_790_000_000_000)
        // Written some seconds after the request was shown.
        _ = try await eventually("the text in the audit chain") {
          let audit = try await fixture.token.audit(of: login.token)
          return audit.contains { $0.detail.contains("Login attempt from ann") } ? true : nil
        }
        #expect(try await fixture.token.accounts() == [.init(account: "ann", stage: "active")])
        let doctor = try await fixture.token.command("doctor", "--authorities", fixture.folder.file("am.pem"))
        #expect(doctor.output.contains("it cannot report whether registrations are valid"), "\(doctor)")
        try await fixture.token.command("remove", "ann").succeeded()
        let without = try await fixture.token.command("doctor", "--authorities", fixture.folder.file("am.pem"))
        #expect(without.output.contains("no active account there; not contacted"), "\(without)")
      }
    }

    @Test("A message is shown to the user once", arguments: Carrier.allCases)
    func messageIsShownToTheUserOnce(by carrier: Carrier) async throws {
      try await withPingAMScene(by: carrier) { fixture in
        try await fixture.enroll("ann")
        let login = try await fixture.login()
        for message in [
          login.push.envelope, fixture.am.amazonForm(of: login.push),
          Array(#"{"messageId":"AUTHENTICATE:other","message":"\#(login.push.message)"}"#.utf8),
        ] {
          try await fixture.repeats(message)
        }
        #expect(try await fixture.token.pending() == [login.token])
        try await fixture.token.answer(login.token, with: .hold, from: login.mark)
        _ = try await fixture.ending(of: login)
        try await fixture.repeats(login.push.envelope)
        #expect(try await fixture.token.pending().isEmpty)
      }
    }

    @Test("A message for an unknown account is refused", arguments: Carrier.allCases)
    func messageForAnUnknownAccountIsRefused(by carrier: Carrier) async throws {
      try await withPingAMScene(by: carrier) { fixture in
        let stranger = fixture.server.realm("elsewhere")
        try await fixture.enroll("ann", at: stranger)
        let foreign = try #require(stranger.send("ann"))
        try await fixture.token.command("remove", "ann").succeeded()
        try await fixture.enroll("ann")
        let push = try #require(fixture.am.send("ann"))
        let forged = push.message.dropLast(2) + (push.message.hasSuffix("A") ? "Bw" : "Aw")
        let cases: [([UInt8], Int32, String)] = [
          (foreign.envelope, 77, "for no account of this token"),
          (Array(#"{"messageId":"\#(push.messageID)","message":"\#(forged)"}"#.utf8), 77, "is not authentic"),
          (Array("{}".utf8), 65, "no messageId"), (Array("hello".utf8), 65, "not a JSON object"),
        ]
        for (message, code, why) in cases { try await fixture.isRefused(message, .code(code), why) }
        let large = String(repeating: " ", count: 16_385)
        if carrier == .broker {
          try await fixture.publish(Array(large.utf8))
          try await fixture.token.log.line(with: "16385 bytes was refused")
        } else {
          let outcome = try await fixture.token.command("push", fixture.folder.write(large, to: "large.json"))
          #expect(outcome.exit == .code(65) && outcome.errors.contains("larger than 16384 bytes"))
        }
        #expect(try fixture.token.log.count(of: "opened request") == 0)
        #expect(try await fixture.token.pending().isEmpty)
        // None of them blocks a valid message.
        let login = try await fixture.login()
        try await fixture.token.answer(login.token, with: .double, from: login.mark)
        _ = try await fixture.ending(of: login)
        try await fixture.token.stop()
        #expect(try await fixture.bring(push.envelope).exit == .code(69))
      }
    }

    @Test("A lost answer is sent again", arguments: Carrier.allCases)
    func aLostAnswerIsSentAgain(by carrier: Carrier) async throws {
      try await withPingAMScene(by: carrier) { fixture in
        try await fixture.enroll("ann")
        let login = try await fixture.login()
        fixture.server.loseAnswers(2)
        try await fixture.token.answer(login.token, with: .hold, from: login.mark)
        #expect(try await fixture.ending(of: login).hasPrefix("approved"))
        #expect(fixture.am.received.suffix(3).count == 3 && Set(fixture.am.received.suffix(3)).count == 1)
        #expect(fixture.am.verify(login.push) == .isTrue)

        // The login page ended before the second attempt.
        let second = try await fixture.login()
        let (am, verified) = (fixture.am, Observed(TestAM.Outcome?.none))
        fixture.server.loseAnswers(1) { verified.change { $0 = am.verify(second.push) } }
        try await fixture.token.answer(second.token, with: .hold, from: second.mark)
        #expect(try await fixture.ending(of: second, as: "unconfirmed").hasPrefix("permanently unknown"))
        #expect(verified.value == .isTrue)
      }
    }

    @Test("A login that is over is over", arguments: Carrier.allCases)
    func aLoginThatIsOverIsOver(by carrier: Carrier) async throws {
      try await withPingAMScene(by: carrier) { fixture in
        try await fixture.enroll("ann")
        let login = try await fixture.login(timeout: 30)
        #expect(try await fixture.ending(of: login) == "expired")
        #expect(try await fixture.token.pending().isEmpty)
        let used = try await fixture.login()
        // Another journey has used up the message.
        fixture.am.forget(used.push)
        try await fixture.token.answer(used.token, with: .hold, from: used.mark)
        #expect(try await fixture.ending(of: used).contains("AM no longer waits for this answer"))
      }
    }

    @Test("A power loss loses no message", arguments: Carrier.allCases)
    func powerLossLosesNoMessage(by carrier: Carrier) async throws {
      try await withPingAMScene(by: carrier) { fixture in
        try await fixture.enroll("ann")
        let push = try #require(fixture.am.send("ann", timeout: 600))
        try await fixture.deliver(push)
        try await fixture.token.kill9()
        try await fixture.token.start()
        let line = try await fixture.token.log.line(with: "opened request ")
        let name = String(try #require(line.firstMatch(of: /opened request ([0-9a-f-]{36})/)?.1))
        try await fixture.token.answer(name, with: .hold)
        try await fixture.token.log.line(with: "settled request \(name)", "approved")
        #expect(fixture.am.verify(push) == .isTrue)
      }
    }

    @Test("Two realms are two servers", arguments: Carrier.allCases)
    func twoRealmsAreTwoServers(by carrier: Carrier) async throws {
      try await withPingAMScene(by: carrier) { fixture in
        let beta = fixture.server.realm("beta", .am74)
        try await fixture.enroll("ann")
        try await fixture.enroll("ann", at: beta, as: "ann-beta")
        let first = try await fixture.login()
        try await fixture.token.answer(first.token, with: .hold, from: first.mark)
        _ = try await fixture.ending(of: first)
        let second = try await fixture.login(at: beta)
        try await fixture.token.answer(second.token, with: .double, from: second.mark)
        _ = try await fixture.ending(of: second)
        #expect(fixture.am.verify(first.push) == .isTrue && beta.verify(second.push) == .isFalse)
        let taken = try await fixture.token.command(
          "mailbox", "ann", "--set", try await fixture.mailbox(of: "ann-beta"))
        #expect(taken.exit == .code(64) && taken.errors.contains("the mailbox of the account \"ann-beta\""))
        try await fixture.token.command("rename", "ann-beta", "work").succeeded()
        let third = try await fixture.login(at: beta)
        try await fixture.token.answer(third.token, with: .hold, from: third.mark)
        #expect(try await fixture.ending(of: third).hasPrefix("approved"))
        #expect(beta.verify(third.push) == .isTrue)
      }
    }

    @Test("A mailbox moves", arguments: Carrier.allCases)
    func aMailboxMoves(by carrier: Carrier) async throws {
      struct Shown: Decodable, Equatable {
        var mailbox: String
        var wanted: String?
      }
      @Sendable func shown(_ fixture: PingAMFixture) async throws -> Shown {
        try await fixture.token.command("mailbox", "ann", "--json").succeeded().decoded()
      }
      try await withPingAMScene(by: carrier) { fixture in
        try await fixture.enroll("ann")
        let former = try await shown(fixture)
        #expect(former == Shown(mailbox: try #require(fixture.am.profiles.first).deviceID))
        fixture.server.set(away: true)
        try await fixture.token.command("mailbox", "ann", "--set", "elsewhere").succeeded()
        #expect(try await shown(fixture) == Shown(mailbox: former.mailbox, wanted: "elsewhere"))
        try await fixture.token.log.line(with: "the new mailbox is not registered with AM", "503")
        let before = try await fixture.login()
        fixture.server.set(away: false)
        try await fixture.token.answer(before.token, with: .hold, from: before.mark)
        #expect(try await fixture.ending(of: before).hasPrefix("approved"))
        _ = try await eventually("the new mailbox at AM") {
          fixture.am.profiles.first?.deviceID == "elsewhere" ? true : nil
        }
        _ = try await eventually("the mailbox that AM confirmed in the storage") {
          try await shown(fixture) == Shown(mailbox: "elsewhere") ? true : nil
        }
        let after = try await fixture.login()
        try await fixture.token.answer(after.token, with: .hold, from: after.mark)
        #expect(try await fixture.ending(of: after).hasPrefix("approved"))
        for impossible in ["token/+", "token/#", "$share/all/token", "two words", ""] {
          let refused = try await fixture.token.command("mailbox", "ann", "--set", impossible)
          #expect(refused.exit == .code(64) && refused.errors.contains("--set takes"), "\(refused)")
        }
        #expect(try await shown(fixture) == Shown(mailbox: "elsewhere"))
      }
    }

    @Test("A lost registration heals by itself", arguments: Carrier.allCases)
    func aLostRegistrationHealsByItself(by carrier: Carrier) async throws {
      try await withPingAMScene(by: carrier) { fixture in
        fixture.server.loseAnswers(1)
        let mark = try fixture.token.log.mark
        let outcome = try await fixture.token.enroll(fixture.am.registrationURI("ann"))
        #expect(outcome.exit == .code(77) && outcome.errors.contains("ask for a new QR code"), "\(outcome)")
        #expect(try await fixture.token.accounts() == [.init(account: "ann", stage: "enrolling")])
        #expect(fixture.am.finishRegistration(of: "ann") != nil)
        try await fixture.listens(from: mark)
        let login = try await fixture.login()
        try await fixture.token.answer(login.token, with: .hold, from: login.mark)
        #expect(try await fixture.ending(of: login).hasPrefix("approved"))
        #expect(try await fixture.token.accounts() == [.init(account: "ann", stage: "active")])

        let refused = try await fixture.token.enroll("pushauth://push/Example:bob?m=1")
        #expect(refused.exit == .code(65) && refused.errors.contains("the registration URI lacks the parameter"))
      }
    }
  }
}
