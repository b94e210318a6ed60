// SPDX-License-Identifier: Apache-2.0
import Foundation
import ProgramHarness
import TestAM
import TestAMServer
import Testing

extension EndToEnd {
  /// Push mechanisms of PingAM: registered over TLS, messages delivered by `approval-token push` or mosquitto, answers
  /// verified as in AM's published source.
  @Suite struct PingAMAnswers {
    /// The answer is verified with the `openssl` command.
    @Test("Yes lets in", arguments: Carrier.allCases)
    func yesLetsIn(by carrier: Carrier) async throws {
      try await withPingAMScene(by: carrier) { fixture in
        try await fixture.enroll("ann")
        let login = try await fixture.login()
        try await fixture.token.answer(login.token, with: .hold, from: login.mark)
        #expect(try await fixture.ending(of: login).hasPrefix("approved, receipt \(login.push.messageID)"))
        #expect(fixture.am.verify(login.push) == .isTrue)
        // Registration and answer, each with the cookie of its own message.
        #expect(fixture.am.strays == 0)
        let secret = try #require(fixture.am.secret(of: "ann"))
        let answer = try await claims(try #require(fixture.am.received.last), signedWith: secret, in: fixture.folder)
        #expect(Set(answer.keys) == ["response"])
        let registration = try await claims(
          try #require(fixture.am.received.first), signedWith: secret, in: fixture.folder)
        let names = [
          "response", "mechanismUid", "deviceId", "deviceName", "deviceType", "communicationType",
        ]
        #expect(Set(registration.keys) == Set(names))
      }
    }

    /// At the broker with the older version of MQTT.
    @Test("No keeps out", arguments: Carrier.allCases)
    func noKeepsOut(by carrier: Carrier) async throws {
      try await withPingAMScene(by: carrier, mqtt: #"version = "3.1.1""#) { fixture in
        try await fixture.enroll("ann")
        for gesture in [UserGesture.double, .notMe] {
          let login = try await fixture.login()
          try await fixture.token.answer(login.token, with: gesture, from: login.mark)
          #expect(try await fixture.ending(of: login).hasPrefix("denied"))
          #expect(fixture.am.verify(login.push) == .isFalse)
        }
        let secret = try #require(fixture.am.secret(of: "ann"))
        let answer = try await claims(try #require(fixture.am.received.last), signedWith: secret, in: fixture.folder)
        #expect(Set(answer.keys) == ["response", "deny"] && answer["deny"] as? Bool == true)
      }
    }

    @Test("The number of the login page lets in", arguments: Carrier.allCases)
    func theNumberOfTheLoginPageLetsIn(by carrier: Carrier) async throws {
      try await withPingAMScene(by: carrier) { fixture in
        try await fixture.enroll("ann")
        for isRight in [true, false] {
          let login = try await fixture.login(.challenge)
          let right = try #require(login.push.number)
          let typed = isRight ? right : try #require(login.push.candidates.first { $0 != right })
          try await fixture.token.type("\(typed)", when: .number)
          // AM stores either answer; only the login page shows the result.
          #expect(try await fixture.ending(of: login).hasPrefix("approved"))
          #expect(fixture.am.verify(login.push, type: .challenge) == (isRight ? .isTrue : .isFalse))
        }
        let secret = try #require(fixture.am.secret(of: "ann"))
        let answer = try await claims(try #require(fixture.am.received.last), signedWith: secret, in: fixture.folder)
        #expect(Set(answer.keys) == ["response", "challengeResponse"] && answer["challengeResponse"] is String)
      }
    }

    @Test("A number that cannot be right is never sent", arguments: Carrier.allCases)
    func aNumberThatCannotBeRightIsNeverSent(by carrier: Carrier) async throws {
      try await withPingAMScene(by: carrier) { fixture in
        try await fixture.enroll("ann")
        let login = try await fixture.login(.challenge)
        let impossible = try #require((10...99).first { !login.push.candidates.contains($0) })
        let received = fixture.am.received.count
        for _ in 1...3 { try await fixture.token.type("\(impossible)", when: .number) }
        #expect(try await fixture.ending(of: login).contains("matched no number that the portal can show"))
        #expect(fixture.am.received.count == received)
        #expect(fixture.am.verify(login.push, type: .challenge) == .waiting)
        #expect(try await fixture.token.pending().isEmpty)
      }
    }

    @Test("The PIN stands for a fingerprint", arguments: Carrier.allCases)
    func thePINStandsForAFingerprint(by carrier: Carrier) async throws {
      try await withPingAMScene(by: carrier, settings: "pin_for_biometric = true\npin_digits = 5") { fixture in
        try await fixture.enroll("ann", choosing: "13589")
        let login = try await fixture.login(.biometric)
        try await fixture.token.type("24680", until: TestToken.pinWrong)
        #expect(try await fixture.token.status().pin(of: "ann")?.previousFailureCount == 1)
        #expect(fixture.am.verify(login.push) == .waiting)
        try await fixture.token.type("13589")
        #expect(try await fixture.ending(of: login).hasPrefix("approved"))
        #expect(fixture.am.verify(login.push) == .isTrue)
      }
    }

    @Test("What wants a fingerprint can only be denied where no PIN may stand for it", arguments: Carrier.allCases)
    func whatWantsAFingerprintCanOnlyBeDeniedWhereNoPINMayStandForIt(by carrier: Carrier) async throws {
      try await withPingAMScene(by: carrier, settings: "pin_for_biometric = false") { fixture in
        try await fixture.enroll("ann")
        let login = try await fixture.login(.biometric)
        try await fixture.token.log.line(
          with: "opened request \(login.token)", "can only be denied", "pin_for_biometric = false", from: login.mark)
        // From here on the hold would be accepted.
        try await fixture.token.asks("PIN wanted")
        try await fixture.token.hold(seconds: 1)
        #expect(fixture.am.verify(login.push) == .waiting)
        try await fixture.token.answer(login.token, with: .double, from: login.mark)
        #expect(try await fixture.ending(of: login).hasPrefix("denied"))
        #expect(fixture.am.verify(login.push, type: .biometric) == .isFalse)
      }
    }
  }
}
