// SPDX-License-Identifier: Apache-2.0
import ProgramHarness
import Testing

extension EndToEnd {
  /// One request that several authenticators can approve, with simulated readers.
  @Suite struct FingerOrBadge {
    private static let types =
      Plugins.authenticator("badge", verifiedBy: "signature = \"badge\"") + Fingerprints.types
      + "alternatives = [\"badge\"]\n"

    /// With both registered, in a session of the PIN.
    private func withBoth(_ body: @escaping (EndToEndFixture) async throws -> Void) async throws {
      try await withPINScene(
        settings: Fingerprints.settings + "\ncustom_authenticators = true", types: Self.types,
        configuration: { _ in
          "[authenticators]\nsimulated_fingerprint = \"finger\"\nsimulated_badge = \"badge\"\n"
        }
      ) { fixture in
        let token = fixture.token
        try await token.registerFinger { _ in try await token.present("index") }
        let registration = try token.begin("authenticator", "register", "alice", "badge")
        try await token.asks("confirmation wanted")
        try await token.perform(.hold)
        try await token.presentWhenAsked(.init(badge: "red"))
        try await registration.outcome().succeeded()
        try await body(fixture)
      }
    }

    @Test("One request takes a finger, a badge after a hold, the PIN, or a denial: whichever comes first")
    func whicheverComesFirst() async throws {
      try await withBoth { fixture in
        let token = fixture.token
        for (method, detail) in [
          ("push_with_fingerprint", "accept by finger"), ("push_with_custom_authenticator", "accept by badge"),
          ("push_with_pin", "accept by PIN"),
        ] {
          let transaction = try await fixture.askForPIN(type: "transfer")
          try await token.asks("number or other data wanted")
          switch method {
          case "push_with_fingerprint": try await token.present("index")
          case "push_with_pin": try await token.type("13589", when: .number)
          default:
            #expect(
              try await token.command("simulate", "badge", "red").succeeded().output.contains("no authenticator"))
            try await token.perform(.hold)
            try await token.presentWhenAsked(.init(badge: "red"))
          }
          #expect(try await fixture.settled(transaction).hasPrefix("approved, receipt "))
          #expect(try await fixture.portal.finalResult(of: transaction).authenticationMethod == method)
          #expect(try await token.audit().contains { $0.kind == "decided" && $0.detail == detail })
        }
        let denied = try await fixture.askForPIN(type: "transfer")
        try await token.shows("number or other data wanted")
        try await token.answer(denied, with: .double)
        #expect(try await fixture.settled(denied).hasPrefix("denied (declined)"))
        #expect(try await fixture.server.pinFailures() == 0)
      }
    }

    private func logInWithBadge(_ token: TestToken) async throws {
      let login = try token.begin("login", "alice", "--authenticator", "badge")
      try await token.asks("confirmation wanted")
      try await token.perform(.hold)
      try await token.presentWhenAsked(.init(badge: "red"))
      try await login.outcome().succeeded()
    }

    /// Fails if who has the badge can replace what is stronger.
    @Test("In a session of the badge, the finger is deregistered and registered with the PIN, and the badge without it")
    func weakerSession() async throws {
      try await withBoth { fixture in
        let token = fixture.token
        try await logInWithBadge(token)
        let deregistration = try token.begin("authenticator", "deregister", "alice", "finger")
        try await token.type("13589")
        try await deregistration.outcome().succeeded()
        #expect(try await fixture.server.account()?.authenticators == ["badge"])

        try await logInWithBadge(token)
        let registration = try token.begin("authenticator", "register", "alice", "finger")
        try await token.type("13589")
        try await token.asks("confirmation wanted")
        try await token.perform(.hold)
        try await token.present("index")
        try await token.type("13589")
        try await registration.outcome().succeeded()
        #expect(try await fixture.server.account()?.authenticators == ["badge", "finger"])

        try await logInWithBadge(token)
        let own = try token.begin("authenticator", "deregister", "alice", "badge")
        try await token.presentWhenAsked(.init(badge: "red"))
        try await own.outcome().succeeded()
        #expect(try await fixture.server.account()?.authenticators == ["finger"])
        #expect(try await fixture.server.pinFailures() == 0)
      }
    }
  }
}
