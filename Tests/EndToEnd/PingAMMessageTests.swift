// SPDX-License-Identifier: Apache-2.0
import Foundation
import ProgramHarness
import TestAM
import TestAMServer
import Testing

extension EndToEnd {
  /// Error cases of messages and answers.
  @Suite struct PingAMMessages {
    @Test(arguments: Carrier.allCases)
    func whatWaitsIsShown(by carrier: Carrier) async throws {
      struct Shown: Decodable {
        let account: String
        let type: String
        let message: String
        let context: String
        let payload: String
        let sentAtMs: Int64
      }
      try await withPingAMScene(by: carrier) { scene in
        try await scene.enrol("ann")
        let login = try await scene.login()
        let shown: [Shown] = try await scene.token.command("pending", "--json").succeeded().decoded()
        let request = try #require(shown.first)
        #expect(request.account == "ann" && request.type == "push" && request.payload == "{  }")
        #expect(request.message == "Login attempt from ann at Example")
        #expect(request.context.contains("198.51.100.7") && request.sentAtMs > 1_790_000_000_000)
        #expect(try await scene.token.audit(of: login.token).contains { $0.detail.contains("Login attempt from ann") })
        #expect(try await scene.token.accounts() == [.init(account: "ann", stage: "active")])
        let doctor = try await scene.token.command("doctor", "--authorities", scene.folder.file("am.pem"))
        #expect(doctor.output.contains("it cannot report whether registrations are valid"), "\(doctor)")
      }
    }

    @Test(arguments: Carrier.allCases)
    func aMessageIsPutToThePersonOnce(by carrier: Carrier) async throws {
      try await withPingAMScene(by: carrier) { scene in
        try await scene.enrol("ann")
        let login = try await scene.login()
        for message in [
          login.push.envelope, scene.am.amazonForm(of: login.push),
          Array(#"{"messageId":"AUTHENTICATE:other","message":"\#(login.push.message)"}"#.utf8),
        ] {
          try await scene.repeats(message)
        }
        #expect(try await scene.token.pending() == [login.token])
        try await scene.token.answer(login.token, with: .hold, from: login.mark)
        _ = try await scene.ending(of: login)
        try await scene.repeats(login.push.envelope)
        #expect(try await scene.token.pending().isEmpty)
      }
    }

    @Test(arguments: Carrier.allCases)
    func whatIsForNobodyHereIsRefused(by carrier: Carrier) async throws {
      try await withPingAMScene(by: carrier) { scene in
        let stranger = scene.server.realm("elsewhere")
        try await scene.enrol("ann", at: stranger)
        let foreign = try #require(stranger.send("ann"))
        try await scene.token.command("remove", "ann").succeeded()
        try await scene.enrol("ann")
        let push = try #require(scene.am.send("ann"))
        let forged = push.message.dropLast(2) + (push.message.hasSuffix("A") ? "Bw" : "Aw")
        let cases: [([UInt8], Int32, String)] = [
          (foreign.envelope, 77, "for no account of this token"),
          (Array(#"{"messageId":"\#(push.messageID)","message":"\#(forged)"}"#.utf8), 77, "is not authentic"),
          (Array("{}".utf8), 65, "no messageId"), (Array("hello".utf8), 65, "not a JSON object"),
        ]
        for (message, code, why) in cases { try await scene.isRefused(message, .code(code), why) }
        let large = String(repeating: " ", count: 16_385)
        if carrier == .broker {
          try await scene.publish(Array(large.utf8))
          try await scene.token.log.line(with: "16385 bytes was refused")
        } else {
          let outcome = try await scene.token.command("push", scene.folder.write(large, to: "large.json"))
          #expect(outcome.exit == .code(65) && outcome.errors.contains("larger than 16384 bytes"))
        }
        #expect(try scene.token.log.count(of: "opened request") == 0)
        #expect(try await scene.token.pending().isEmpty)
        // None of them blocks a valid message.
        let login = try await scene.login()
        try await scene.token.answer(login.token, with: .double, from: login.mark)
        _ = try await scene.ending(of: login)
        try await scene.token.stop()
        #expect(try await scene.bring(push.envelope).exit == .code(69))
      }
    }

    @Test(arguments: Carrier.allCases)
    func aLostAnswerIsSentAgain(by carrier: Carrier) async throws {
      try await withPingAMScene(by: carrier) { scene in
        try await scene.enrol("ann")
        let login = try await scene.login()
        scene.server.loseAnswers(2)
        try await scene.token.answer(login.token, with: .hold, from: login.mark)
        #expect(try await scene.ending(of: login).hasPrefix("approved"))
        #expect(scene.am.received.suffix(3).count == 3 && Set(scene.am.received.suffix(3)).count == 1)
        #expect(scene.am.verify(login.push) == .isTrue)

        // The login page ended before the second attempt.
        let second = try await scene.login()
        scene.server.loseAnswers(1)
        let answers = scene.am.received.count
        async let answered: Void = scene.token.answer(second.token, with: .hold, from: second.mark)
        _ = try await eventually("the first answer") { scene.am.received.count > answers ? true : nil }
        #expect(scene.am.verify(second.push) == .isTrue)
        try await answered
        #expect(try await scene.ending(of: second).hasPrefix("permanently unknown"))
      }
    }

    @Test(arguments: Carrier.allCases)
    func aLoginThatIsOverIsOver(by carrier: Carrier) async throws {
      try await withPingAMScene(by: carrier) { scene in
        try await scene.enrol("ann")
        let login = try await scene.login(timeout: 10)
        #expect(try await scene.ending(of: login) == "expired")
        #expect(try await scene.token.pending().isEmpty)
        let used = try await scene.login()
        // Another journey has used up the message.
        scene.am.forget(used.push)
        try await scene.token.answer(used.token, with: .hold, from: used.mark)
        #expect(try await scene.ending(of: used).contains("AM no longer waits for this answer"))
      }
    }

    @Test(arguments: Carrier.allCases)
    func aPowerCutLosesNoMessage(by carrier: Carrier) async throws {
      try await withPingAMScene(by: carrier) { scene in
        try await scene.enrol("ann")
        let push = try #require(scene.am.send("ann"))
        try await scene.deliver(push)
        try await scene.token.kill9()
        try await scene.token.start()
        let line = try await scene.token.log.line(with: "opened request ")
        let name = String(try #require(line.firstMatch(of: /opened request ([0-9a-f-]{36})/)?.1))
        try await scene.token.answer(name, with: .hold)
        try await scene.token.log.line(with: "settled request \(name)", "approved")
        #expect(scene.am.verify(push) == .isTrue)
      }
    }

    @Test(arguments: Carrier.allCases)
    func twoRealmsAreTwoServers(by carrier: Carrier) async throws {
      try await withPingAMScene(by: carrier) { scene in
        let beta = scene.server.realm("beta", .am74)
        try await scene.enrol("ann")
        try await scene.enrol("ann", at: beta, as: "ann-beta")
        let first = try await scene.login()
        try await scene.token.answer(first.token, with: .hold, from: first.mark)
        _ = try await scene.ending(of: first)
        let second = try await scene.login(at: beta)
        try await scene.token.answer(second.token, with: .double, from: second.mark)
        _ = try await scene.ending(of: second)
        #expect(scene.am.verify(first.push) == .isTrue && beta.verify(second.push) == .isFalse)
        let taken = try await scene.token.command("mailbox", "ann", "--set", try await scene.mailbox(of: "ann-beta"))
        #expect(taken.exit == .code(64) && taken.errors.contains("the mailbox of the account \"ann-beta\""))
        try await scene.token.command("rename", "ann-beta", "work").succeeded()
        let third = try await scene.login(at: beta)
        try await scene.token.answer(third.token, with: .hold, from: third.mark)
        #expect(try await scene.ending(of: third).hasPrefix("approved"))
        #expect(beta.verify(third.push) == .isTrue)
      }
    }

    @Test(arguments: Carrier.allCases)
    func aMailboxMoves(by carrier: Carrier) async throws {
      struct Shown: Decodable, Equatable {
        var mailbox: String
        var wanted: String?
      }
      @Sendable func shown(_ scene: PingAMScene) async throws -> Shown {
        try await scene.token.command("mailbox", "ann", "--json").succeeded().decoded()
      }
      try await withPingAMScene(by: carrier) { scene in
        try await scene.enrol("ann")
        let former = try await shown(scene)
        #expect(former == Shown(mailbox: try #require(scene.am.profiles.first).deviceID))
        scene.server.set(away: true)
        try await scene.token.command("mailbox", "ann", "--set", "elsewhere").succeeded()
        #expect(try await shown(scene) == Shown(mailbox: former.mailbox, wanted: "elsewhere"))
        try await scene.token.log.line(with: "the new mailbox is not registered with AM", "503")
        let before = try await scene.login()
        scene.server.set(away: false)
        try await scene.token.answer(before.token, with: .hold, from: before.mark)
        #expect(try await scene.ending(of: before).hasPrefix("approved"))
        _ = try await eventually("the new mailbox at AM") {
          scene.am.profiles.first?.deviceID == "elsewhere" ? true : nil
        }
        _ = try await eventually("AM's word on the card") {
          try await shown(scene) == Shown(mailbox: "elsewhere") ? true : nil
        }
        let after = try await scene.login()
        try await scene.token.answer(after.token, with: .hold, from: after.mark)
        #expect(try await scene.ending(of: after).hasPrefix("approved"))
        for impossible in ["token/+", "token/#", "$share/all/token", "two words", ""] {
          let refused = try await scene.token.command("mailbox", "ann", "--set", impossible)
          #expect(refused.exit == .code(64) && refused.errors.contains("--set takes"), "\(refused)")
        }
        #expect(try await shown(scene) == Shown(mailbox: "elsewhere"))
      }
    }

    @Test(arguments: Carrier.allCases)
    func aLostRegistrationHealsByItself(by carrier: Carrier) async throws {
      try await withPingAMScene(by: carrier) { scene in
        scene.server.loseAnswers(1)
        let mark = try scene.token.log.mark
        let outcome = try await scene.token.enrol(scene.am.registrationURI("ann"))
        #expect(outcome.exit == .code(77) && outcome.errors.contains("ask for a new QR code"), "\(outcome)")
        #expect(try await scene.token.accounts() == [.init(account: "ann", stage: "enrolling")])
        #expect(scene.am.finishRegistration(of: "ann") != nil)
        try await scene.listens(from: mark)
        let login = try await scene.login()
        try await scene.token.answer(login.token, with: .hold, from: login.mark)
        #expect(try await scene.ending(of: login).hasPrefix("approved"))
        #expect(try await scene.token.accounts() == [.init(account: "ann", stage: "active")])

        let refused = try await scene.token.enrol("pushauth://push/Example:bob?m=1")
        #expect(refused.exit == .code(65) && refused.errors.contains("the registration URI has no s"))
      }
    }
  }
}
