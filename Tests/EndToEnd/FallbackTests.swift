// SPDX-License-Identifier: Apache-2.0
import ProgramHarness
import Testing

extension EndToEnd {
  /// Requests that need an authenticator which this token does not have.
  @Suite struct Fallbacks {
    private static let settings = Fingerprints.settings
    private static let types =
      Fingerprints.types + """
        [[type]]
        name = "vault"
        method = "push_with_fingerprint"
        fallback = "none"
        request_expires_in = 600
        """

    @Test("A request for a fingerprint is approved with the PIN") func fingerprintFallsBackToThePIN() async throws {
      try await withPINScene(settings: Self.settings, types: Self.types) { fixture in
        try await fixture.server.registerFingerprint()
        let transaction = try await fixture.askForPIN(type: "transfer")
        try await fixture.token.log.line(with: "transfer, with the PIN instead of push_with_fingerprint")
        #expect(try await fixture.server.pinFailures() == 0)
        try await fixture.token.type(EndToEndFixture.wrongPIN, until: TestToken.pinWrong)
        try await fixture.token.type("13589")
        #expect(try await fixture.settled(transaction).hasPrefix("approved, receipt "))
        let result = try await fixture.portal.finalResult(of: transaction)
        #expect(result.isAuthenticated)
        #expect(result.authenticationMethod == "push_with_pin")
        #expect(result.usedAuthenticationAttempts == 2)
        #expect(try await fixture.server.pinFailures() == 0)
      }
    }

    @Test("Without a fallback, a request for a fingerprint can only be denied") func fingerprintWithoutFallback()
      async throws
    {
      try await withPINScene(settings: Self.settings, types: Self.types) { fixture in
        try await fixture.server.registerFingerprint()
        let transaction = try await fixture.askForPIN(type: "vault")
        try await fixture.token.asks("PIN wanted")
        let pending = try await fixture.token.command("pending").succeeded().output
        #expect(pending.contains("can only be denied: it needs push_with_fingerprint"))
        try await fixture.token.shows("press or key ignored") { try await fixture.token.hold(seconds: 1) }
        #expect(try await fixture.portal.result(of: transaction).isAuthenticated == false)
        try await fixture.token.answer(transaction, with: .double)
        #expect(try await fixture.settled(transaction).hasPrefix("denied (declined)"))
        let result = try await fixture.portal.finalResult(of: transaction)
        #expect(!result.isAuthenticated && result.reason == "not_accepted")
      }
    }
  }
}

extension TestServer {
  /// Registers the authenticator "finger" for alice, as a token with a fingerprint reader would.
  fileprivate func registerFingerprint() async throws {
    let point = "58" + String(repeating: "66", count: 31)
    try await edit(
      """
      INSERT INTO authenticator (client_id, profile_id, id, kind, registration_id, public_key, refresh_token_hash, \
      state, proposed_at_ms) SELECT client_id, id, 'finger', 'biometric', 'registration', x'\(point)', x'00', \
      'active', 0 FROM profile WHERE user_id = 'alice'
      """)
  }
}
