// SPDX-License-Identifier: Apache-2.0
import Foundation
import ProgramHarness
import TestAM
import TestAMServer
import Testing

extension EndToEnd {
  /// Answers to AM that are interrupted by a kill or a reload, verified with `openssl`.
  @Suite struct PingAMCuts {
    /// AM receives every attempt, but its responses are lost until the connection is repaired.
    @Test func aKilledTokenSendsTheSameBytesAgain() async throws {
      try await withPingAMScene { scene in
        try await scene.enrol("ann")
        for (act, outcome) in [(Act.hold, TestAM.Outcome.isTrue), (.double, .isFalse)] {
          let login = try await scene.login()
          let before = try await interrupted(login, by: act, scene)
          try await scene.token.kill9()
          try await scene.token.start()
          try await scene.token.log.line(with: "request \(login.token): trying again")
          scene.server.loseAnswers(0)
          try await scene.token.log.line(with: "settled request \(login.token)")
          let ending = try await scene.token.ending(of: login.token) ?? ""
          #expect(ending.hasPrefix(act == .hold ? "approved, receipt \(login.push.messageID)" : "denied"), "\(ending)")
          #expect(Set(scene.am.received.dropFirst(before)).count == 1)
          #expect(scene.am.verify(login.push) == outcome)
          #expect(try await scene.token.audit(of: login.token).count { $0.kind == "decided" } == 1)
        }
      }
    }

    @Test func aReloadSendsTheSameBytesAgain() async throws {
      try await withPingAMScene { scene in
        try await scene.enrol("ann")
        let login = try await scene.login()
        let before = try await interrupted(login, by: .hold, scene)
        try await scene.token.command("rename", "ann", "anna").succeeded()
        let tries = scene.am.received.count
        _ = try await eventually("another try") {
          scene.am.received.count >= tries + 2 ? true : nil
        }
        scene.server.loseAnswers(0)
        #expect(try await scene.ending(of: login).hasPrefix("approved, receipt \(login.push.messageID)"))
        #expect(Set(scene.am.received.dropFirst(before)).count == 1)
        #expect(scene.am.verify(login.push) == .isTrue)
      }
    }

    /// - Returns: the number of JWTs that AM had received before the answer that is now in delivery.
    private func interrupted(_ login: PingAMScene.Login, by act: Act, _ scene: PingAMScene) async throws -> Int {
      let before = scene.am.received.count
      scene.server.loseAnswers(.max)
      try await scene.token.answer(login.token, with: act, from: login.mark)
      _ = try await eventually("two tries") {
        scene.am.received.count >= before + 2 ? true : nil
      }
      return before
    }

    @Test func whoeverIsTooLateSeesIt() async throws {
      try await withPingAMScene { scene in
        try await scene.enrol("ann")
        let eyes = try scene.token.watchLED()
        try await eyes.output.line(with: "idle, connected")
        let login = try await scene.login()
        scene.am.forget(login.push)
        try await scene.token.answer(login.token, with: .hold, from: login.mark)
        try await eyes.output.line(with: "a request could not be answered: see the log")
        try await eyes.output.line(with: "idle, connected", from: eyes.output.mark)
      }
    }

    @Test func biometricAnswersAndRefreshesAreSigned() async throws {
      try await withPingAMScene(settings: "pin_for_biometric = true\npin_digits = 5") { scene in
        try await scene.enrol("ann", choosing: "13589")
        let secret = try #require(scene.am.secret(of: "ann"))
        let login = try await scene.login(.biometric)
        try await scene.token.type("13589")
        #expect(try await scene.ending(of: login).hasPrefix("approved"))
        let answer = try await claims(try #require(scene.am.received.last), signedWith: secret, in: scene.folder)
        // Nothing in the answer indicates a PIN.
        #expect(Set(answer.keys) == ["response"])

        let mailbox = "0123456789abcdef0123456789abcdef"
        try await scene.token.command("mailbox", "ann", "--set", mailbox).succeeded()
        _ = try await eventually("the new mailbox at AM") {
          scene.am.profiles.first?.deviceID == mailbox ? true : nil
        }
        let refresh = try await claims(try #require(scene.am.received.last), signedWith: secret, in: scene.folder)
        #expect(Set(refresh.keys) == ["deviceId", "deviceName", "deviceType", "communicationType"])
        #expect(refresh["deviceId"] as? String == mailbox)
      }
    }

    @Test func aLostRegistrationKeepsBothHalves() async throws {
      try await withPingAMScene { scene in
        scene.server.loseAnswers(1)
        let uri = scene.am.registrationURI("ann", oath: "secret=IBAUEQ2EIVDEOSCJJJFUYTKOJ5IFCUST&period=30")
        #expect(try await scene.token.enrol(uri).exit == .code(77))
        #expect(try await scene.token.command("otp", "ann").exit == .code(77), "AM may not know it")
        #expect(scene.am.finishRegistration(of: "ann") != nil)
        let login = try await scene.login()
        try await scene.token.answer(login.token, with: .hold, from: login.mark)
        #expect(try await scene.ending(of: login).hasPrefix("approved"))
        #expect(try await scene.token.command("otp", "ann").succeeded().output.count == 6)
      }
    }
  }
}
