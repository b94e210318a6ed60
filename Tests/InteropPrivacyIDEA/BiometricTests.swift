// SPDX-License-Identifier: Apache-2.0
import ProgramHarness
import Testing

extension InteropPrivacyIDEA {
  /// An enrollment that requires a fingerprint before each approval. The server only asks for it: how the token was
  /// unlocked, it does not learn.
  @Suite struct Biometric {
    private static let reader = "[authenticators]\nsimulated_fingerprint = \"finger\"\n"

    /// Puts a finger on the simulated reader, as soon as it is asked.
    private func present(_ finger: String, _ token: TestToken) async throws {
      try await token.presentWhenAsked(.init(finger: finger))
    }

    private func expectApproval(
      _ how: String, _ serial: String, _ fixture: PushServerFixture, _ answer: () async throws -> Void
    ) async throws {
      let login = try await fixture.login(with: serial)
      #expect(try fixture.server.challengeStatus(login.portal) == "pending")
      try await answer()
      #expect(try await fixture.ending(of: login).hasPrefix("approved, receipt "))
      #expect(try fixture.server.finalize(serial, login.portal) == "ACCEPT")
      let decided = try await fixture.token.audit(of: login.token).filter { $0.kind == "decided" }.map(\.detail)
      #expect(decided == ["accept by \(how)"])
    }

    @Test("The PIN replaces a required fingerprint as long as pin_for_biometric is true; a finger approves without it")
    func pinForBiometric() async throws {
      let server = try PushServer.shared.get()
      let fixture = try PushServerFixture(at: server, settings: "pin_for_biometric = true\n\(Self.reader)")
      let token = fixture.token
      try await token.start()
      try server.policy("unlock", scope: "enrollment", ["push_app_force_unlock": "biometric"])
      let made = Result { try server.makeToken() }
      try server.removePolicy("unlock")
      let (serial, url) = try made.get()
      let mark = try token.log.mark
      #expect(try await token.enroll(url, name: "desk", choosing: "135790").exit == .code(0))
      try await token.log.line(with: "] connected to", from: mark)
      try await expectApproval("PIN", serial, fixture) { try await token.type("135790") }

      let registration = try token.begin("authenticator", "register", "desk", "finger")
      try await token.asks("confirmation wanted")
      try await token.perform(.hold)
      try await present("index", token)
      try await token.type("135790")
      try await registration.outcome().succeeded()
      try await expectApproval("finger", serial, fixture) { try await present("index", token) }

      // The setting holds for each request, also for those of this enrollment.
      try fixture.configure(settings: Self.reader)
      try await token.kill9()
      try await token.startConnected()
      let refused = try await fixture.login(with: serial)
      #expect(refused.announcement.contains("can only be denied") && refused.announcement.contains("no PIN is allowed"))
      try await fixture.expect(
        .double, on: refused, toEndAs: "denied", seenAs: "cancelled", finally: "REJECT", with: serial)
      // The PIN of a PIN change makes the finger usable after power-on.
      let change = try token.begin("pin", "change", "desk")
      try await token.type("135790")
      try await token.choose("864201")
      try await change.outcome().succeeded()
      try await expectApproval("finger", serial, fixture) { try await present("index", token) }
      try await fixture.end()
    }
  }
}
