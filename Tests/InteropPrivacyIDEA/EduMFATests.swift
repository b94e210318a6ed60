import Testing

extension InteropPrivacyIDEA {
  /// eduMFA's own type of token, which takes elliptic keys, knows no reasons and would let an accept overturn a decline.
  @Suite struct EduMFA {
    @Test func `Enrolled with RSA and with P-256, accepted and declined`() async throws {
      let server = try PushServer(.eduMFA)
      // A SubjectPublicKeyInfo of P-256 has 91 bytes.
      for (setting, lengths) in [("elliptic = false", 300...2000), ("elliptic = true", 124...124)] {
        let scene = try PushScene(at: server, settings: setting)
        try await scene.token.start()
        let (serial, url) = try server.makeToken()
        #expect(url.hasPrefix("edumfa-push://edumfa/"))
        try await scene.enrol(url, as: "desk")
        #expect(lengths.contains(try server.deviceKey(of: serial).count))
        for (act, ending, verdict) in [
          (Act.hold, "approved, receipt ", "ACCEPT"), (.double, "denied (declined)", "REJECT"),
          (.notMe, "denied (not-me)", "REJECT"),
        ] {
          let login = try await scene.login(with: serial)
          try await scene.token.answer(login.token, with: act, from: login.mark)
          #expect(try await scene.ending(of: login).hasPrefix(ending))
          #expect(try server.finalise(serial, login.portal) == verdict)
        }
        try await scene.end()
      }
    }
  }
}
