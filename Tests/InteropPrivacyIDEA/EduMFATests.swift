// SPDX-License-Identifier: Apache-2.0
import ProgramHarness
import Testing

extension InteropPrivacyIDEA {
  /// eduMFA's own token type. It accepts elliptic keys, has no reasons, and would let an approval overrule a denial.
  @Suite struct EduMFA {
    @Test("Enrolled with RSA and with P-256, approved and denied") func enrolledWithRSAAndWithP256ApprovedAndDenied()
      async throws
    {
      let server = try PushServer(.eduMFA)
      // A SubjectPublicKeyInfo of P-256 has 91 bytes.
      for (setting, lengths) in [("elliptic = false", 300...2000), ("elliptic = true", 124...124)] {
        let fixture = try PushServerFixture(at: server, settings: setting)
        try await fixture.token.start()
        let (serial, url) = try server.makeToken()
        #expect(url.hasPrefix("edumfa-push://edumfa/"))
        try await fixture.enroll(url, as: "desk")
        #expect(lengths.contains(try server.deviceKey(of: serial).count))
        for (gesture, ending, verdict) in [
          (UserGesture.hold, "approved, receipt ", "ACCEPT"), (.double, "denied (declined)", "REJECT"),
          (.notMe, "denied (not-me)", "REJECT"),
        ] {
          try await fixture.answer(serial, gesture, ending, verdict)
        }
        try await fixture.end()
      }
    }

    @Test("The older token type, which uses privacyIDEA's protocol") func olderTokenTypeWhichUsesPrivacyIDEAsProtocol()
      async throws
    {
      let server = try PushServer(.eduMFA, tokenType: "push")
      let fixture = try PushServerFixture(at: server)
      try await fixture.token.start()
      let (serial, url) = try server.makeToken()
      #expect(url.hasPrefix("otpauth://pipush/") && serial.hasPrefix("PIPU"))
      try await fixture.enroll(url, as: "desk")
      for (gesture, ending, verdict) in [
        (UserGesture.hold, "approved, receipt ", "ACCEPT"), (.double, "denied (declined)", "REJECT"),
      ] {
        try await fixture.answer(serial, gesture, ending, verdict)
      }
      try await fixture.end()
    }
  }
}

extension PushServerFixture {
  fileprivate func answer(_ serial: String, _ gesture: UserGesture, _ ending: String, _ verdict: String) async throws {
    let login = try await login(with: serial)
    try await token.answer(login.token, with: gesture, from: login.mark)
    #expect(try await self.ending(of: login).hasPrefix(ending))
    #expect(try server.finalize(serial, login.portal) == verdict)
  }
}
