// SPDX-License-Identifier: Apache-2.0
import ProgramHarness
import Testing

extension EndToEnd {
  /// One request that several authenticators can approve, with simulated readers.
  @Suite struct FingerOrBadge {
    private static let types =
      Plugins.authenticator("badge", verifiedBy: "signature = \"badge\"") + Fingerprints.types
      + "alternatives = [\"badge\"]\n"

    @Test("One request takes a finger, a badge after a hold, the PIN, or a denial: whichever comes first")
    func whicheverComesFirst() async throws {
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
  }
}
