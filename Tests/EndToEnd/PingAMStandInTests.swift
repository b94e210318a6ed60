// SPDX-License-Identifier: Apache-2.0
import ProgramHarness
import TestAM
import Testing

extension EndToEnd {
  /// A finger or a badge in place of the PIN where AM requires user verification.
  @Suite struct PingAMStandIns {
    private func withReaders(
      _ settings: String = "", _ body: @Sendable (PingAMFixture) async throws -> Void
    ) async throws {
      try await withPingAMScene(
        settings: "pin_digits = 5\n\(settings)",
        authenticators: "simulated_fingerprint = \"finger\"\nsimulated_badge = \"badge\""
      ) { fixture in
        try await fixture.enroll("ann")
        let choice = try fixture.token.begin("pin", "change", "ann")
        try await fixture.token.choose("13589")
        try await choice.outcome().succeeded()
        try await body(fixture)
      }
    }

    /// Registers an authenticator: a hold, its use, and the PIN.
    private func register(_ reader: String, _ presented: Presented, _ token: TestToken) async throws {
      let registration = try token.begin("authenticator", "register", "ann", reader)
      try await token.asks("confirmation wanted")
      try await token.perform(.hold)
      try await token.presentWhenAsked(presented)
      try await token.type("13589")
      try await registration.outcome().succeeded()
    }

    @Test("A finger approves, also after a restart and the PIN; three strangers leave the PIN") func finger()
      async throws
    {
      try await withReaders { fixture in
        let token = fixture.token
        try await register("finger", .init(finger: "ann"), token)
        let first = try await fixture.login(.biometric)
        try await token.present("ann")
        #expect(try await fixture.ending(of: first).hasPrefix("approved"))
        #expect(fixture.am.verify(first.push) == .isTrue)
        #expect(try await token.audit().contains { $0.kind == "decided" && $0.detail == "accept by finger" })

        try await token.kill9()
        try await token.start()
        let second = try await fixture.login(.biometric)
        try await token.type("13589")
        #expect(try await fixture.ending(of: second).hasPrefix("approved"))
        let third = try await fixture.login(.biometric)
        for _ in 1...3 { try await token.present("stranger") }
        try await token.type("13589")
        #expect(try await fixture.ending(of: third).hasPrefix("approved"))
        #expect(
          try await token.audit().contains {
            $0.kind == "authenticator-revoked" && $0.detail == "finger: 3 fingers did not match"
          })
        let listed = try await token.command("authenticators", "ann", "--registered").succeeded().output
        #expect(listed.contains("pin") && !listed.contains("finger"))
      }
    }

    @Test("Where no PIN may stand for it, the PIN of a PIN change makes a finger usable after power-on")
    func afterPINChange() async throws {
      try await withReaders("pin_for_biometric = false") { fixture in
        let token = fixture.token
        try await register("finger", .init(finger: "ann"), token)
        try await token.kill9()
        try await token.start()
        let early = try await fixture.login(.biometric)
        try await token.log.line(with: "can only be denied", "pin_for_biometric = false", from: early.mark)
        try await token.answer(early.token, with: .double, from: early.mark)
        #expect(try await fixture.ending(of: early).hasPrefix("denied"))
        let change = try token.begin("pin", "change", "ann")
        try await token.type("13589")
        try await token.choose("24680")
        _ = try await change.outcome()
        let login = try await fixture.login(.biometric)
        try await token.present("ann")
        #expect(try await fixture.ending(of: login).hasPrefix("approved"))
        #expect(fixture.am.verify(login.push) == .isTrue)
      }
    }

    @Test("A badge approves after a hold; another badge does not; it can be deregistered") func badge() async throws {
      try await withReaders { fixture in
        let token = fixture.token
        try await register("badge", .init(badge: "red"), token)
        let login = try await fixture.login(.biometric)
        for name in ["blue", "red"] {
          try await token.asks("confirmation wanted")
          try await token.perform(.hold)
          try await token.presentWhenAsked(.init(badge: name))
        }
        #expect(try await fixture.ending(of: login).hasPrefix("approved"))
        #expect(fixture.am.verify(login.push) == .isTrue)
        #expect(try await token.audit().contains { $0.kind == "authenticator-failed" })

        let follower = try token.begin("events", "--follow", "--json")
        try await follower.output.line(with: "\"following\"")
        let removal = try token.begin("authenticator", "deregister", "ann", "badge")
        try await token.asks("confirmation wanted")
        try await token.perform(.hold)
        try await removal.outcome().succeeded()
        // The server, which does not know it, was not notified.
        let event = try await follower.output.line(with: "\"authenticator-deregistered\"")
        #expect(!event.contains("server_notified") && !event.contains("failure"))
        let other = try await fixture.login(.biometric)
        try await token.type("13589")
        #expect(try await fixture.ending(of: other).hasPrefix("approved"))
      }
    }
  }
}
