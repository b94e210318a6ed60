// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import Foundation
import ProgramHarness
import TestAM
import TestAMServer
import Testing

extension EndToEnd {
  /// Answers to AM that are interrupted by a kill or a reload, verified with `openssl`.
  @Suite struct PingAMCuts {
    /// AM receives every attempt, but its responses are lost until the connection is repaired.
    @Test("A killed token sends the same bytes again") func aKilledTokenSendsTheSameBytesAgain() async throws {
      try await withPingAMScene { fixture in
        try await fixture.enroll("ann")
        for (gesture, outcome) in [(UserGesture.hold, TestAM.Outcome.isTrue), (.double, .isFalse)] {
          let login = try await fixture.login()
          let before = try await interrupted(login, by: gesture, fixture)
          try await fixture.token.kill9()
          try await fixture.token.start()
          try await fixture.token.log.line(with: "request \(login.token): trying again")
          fixture.server.loseAnswers(0)
          let ending = try await fixture.token.ending(of: login.token)
          #expect(
            ending.hasPrefix(gesture == .hold ? "approved, receipt \(login.push.messageID)" : "denied"), "\(ending)")
          #expect(Set(fixture.am.received.dropFirst(before)).count == 1)
          #expect(fixture.am.verify(login.push) == outcome)
          #expect(try await fixture.token.audit(of: login.token).count { $0.kind == "decided" } == 1)
        }
      }
    }

    @Test("A reload sends the same bytes again") func aReloadSendsTheSameBytesAgain() async throws {
      try await withPingAMScene { fixture in
        try await fixture.enroll("ann")
        let login = try await fixture.login()
        let before = try await interrupted(login, by: .hold, fixture)
        try await fixture.token.command("rename", "ann", "anna").succeeded()
        let tries = fixture.am.received.count
        _ = try await eventually("another try") {
          fixture.am.received.count >= tries + 2 ? true : nil
        }
        fixture.server.loseAnswers(0)
        #expect(try await fixture.ending(of: login).hasPrefix("approved, receipt \(login.push.messageID)"))
        #expect(Set(fixture.am.received.dropFirst(before)).count == 1)
        #expect(fixture.am.verify(login.push) == .isTrue)
      }
    }

    /// - Returns: the number of JWTs that AM had received before the answer that is now in delivery.
    private func interrupted(_ login: PingAMFixture.Login, by gesture: UserGesture, _ fixture: PingAMFixture)
      async throws
      -> Int
    {
      let before = fixture.am.received.count
      fixture.server.loseAnswers(.max)
      try await fixture.token.answer(login.token, with: gesture, from: login.mark)
      // Its error has the last lines of the log.
      try await fixture.token.log.line(with: "request \(login.token): trying again", from: login.mark)
      _ = try await eventually("two tries") {
        fixture.am.received.count >= before + 2 ? true : nil
      }
      return before
    }

    @Test("An answer that is too late is shown as such") func answerThatIsTooLateIsShownAsSuch() async throws {
      try await withPingAMScene { fixture in
        try await fixture.enroll("ann")
        let eyes = try fixture.token.watchLED()
        try await eyes.output.line(with: "idle, connected")
        let login = try await fixture.login()
        fixture.am.forget(login.push)
        let mark = eyes.output.mark
        try await fixture.token.answer(login.token, with: .hold, from: login.mark)
        try await eyes.output.line(with: "a request could not be answered: see the log", from: mark)
        try await eyes.output.line(with: "idle, connected", from: mark)
      }
    }

    @Test("Biometric answers and refreshes are signed") func biometricAnswersAndRefreshesAreSigned() async throws {
      try await withPingAMScene(settings: "pin_for_biometric = true\npin_digits = 5") { fixture in
        try await fixture.enroll("ann", choosing: "13589")
        let secret = try #require(fixture.am.secret(of: "ann"))
        let login = try await fixture.login(.biometric)
        try await fixture.token.type("13589")
        #expect(try await fixture.ending(of: login).hasPrefix("approved"))
        let answer = try await claims(try #require(fixture.am.received.last), signedWith: secret, in: fixture.folder)
        // Nothing in the answer indicates a PIN.
        #expect(Set(answer.keys) == ["response"])

        let mailbox = "0123456789abcdef0123456789abcdef"
        try await fixture.token.command("mailbox", "ann", "--set", mailbox).succeeded()
        _ = try await eventually("the new mailbox at AM") {
          fixture.am.profiles.first?.deviceID == mailbox ? true : nil
        }
        let refresh = try await claims(try #require(fixture.am.received.last), signedWith: secret, in: fixture.folder)
        #expect(Set(refresh.keys) == ["deviceId", "deviceName", "deviceType", "communicationType"])
        #expect(refresh["deviceId"] as? String == mailbox)
      }
    }

    @Test("A lost registration keeps both halves") func aLostRegistrationKeepsBothHalves() async throws {
      try await withPingAMScene { fixture in
        fixture.server.loseAnswers(1)
        let uri = fixture.am.registrationURI("ann", oath: "secret=IBAUEQ2EIVDEOSCJJJFUYTKOJ5IFCUST&period=30")
        #expect(try await fixture.token.enroll(uri).exit == .code(77))
        #expect(try await fixture.token.command("otp", "ann").exit == .code(77), "AM may not know it")
        #expect(fixture.am.finishRegistration(of: "ann") != nil)
        let login = try await fixture.login()
        try await fixture.token.answer(login.token, with: .hold, from: login.mark)
        #expect(try await fixture.ending(of: login).hasPrefix("approved"))
        #expect(try await fixture.token.command("otp", "ann").succeeded().output.count == 6)
      }
    }
  }
}
