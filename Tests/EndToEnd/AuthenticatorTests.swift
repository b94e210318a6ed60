// SPDX-License-Identifier: Apache-2.0
import Foundation
import ProgramHarness
import Testing

extension EndToEnd {
  /// The authenticator in `examples/employee-number`: a code on the keypad, checked by the token server's scripts.
  @Suite struct Authenticators {
    private static let number = "employee-number"
    private static let scripts =
      URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
      .appending(path: "examples/employee-number").path
    private static let types = """
      [[authenticator]]
      id = "employee-number"
      name = "Employee number"
      kind = "custom"
      scripts = "\(scripts)"
      time_limit_seconds = 60
      max_failures = 2
      [[authenticator]]
      id = "badge"
      name = "Badge"
      kind = "custom"
      scripts = "\(scripts)"
      time_limit_seconds = 60
      [[type]]
      name = "transfer"
      method = "push_with_custom_authenticator"
      authenticator = "employee-number"
      request_expires_in = 600
      [[type]]
      name = "code-only"
      method = "push_with_custom_authenticator"
      authenticator = "employee-number"
      fallback = "none"
      request_expires_in = 600

      """

    private struct Listed: Decodable, Equatable {
      let identifier: String
      let registered: Bool
      let preferred: Bool

      init(_ identifier: String, registered: Bool = true, preferred: Bool = false) {
        (self.identifier, self.registered, self.preferred) = (identifier, registered, preferred)
      }
    }

    private struct List: Decodable { let authenticators: [Listed] }

    private func withNumbers(_ body: @escaping (EndToEndFixture) async throws -> Void) async throws {
      try await withPINScene(
        settings: "max_pin_attempts = 3\ncustom_authenticators = true", types: Self.types,
        configuration: { _ in "[authenticators]\nkeypad_codes = [\"employee-number\"]\n" }, body)
    }

    private func list(_ token: TestToken, _ selection: String? = nil) async throws -> [Listed] {
      let outcome =
        if let selection { try await token.command("authenticators", "alice", "--json", selection) } else {
          try await token.command("authenticators", "alice", "--json")
        }
      return try outcome.succeeded().decoded(List.self).authenticators
    }

    /// Registers the number 4711. The account is logged in, or logs in with the PIN on the way.
    private func register(_ token: TestToken, withPIN pin: String? = "13589") async throws {
      let registration = try token.begin("authenticator", "register", "alice", Self.number)
      if let pin { try await token.type(pin) }
      try await token.asks("confirmation wanted")
      try await token.perform(.hold)
      try await token.type("4711", when: .number)
      try await registration.outcome().succeeded()
    }

    private func expectRefusal(_ outcome: Outcome, number: Int) {
      #expect(outcome.exit == .code(77) && outcome.errors.contains("\"number\":\(number)"), "\(outcome)")
    }

    @Test("A code is registered, approves requests, and logs in") func codeFromEndToEnd() async throws {
      try await withNumbers { fixture in
        let token = fixture.token
        let pin = Listed("pin", preferred: true)
        #expect(try await list(token) == [pin, Listed(Self.number, registered: false)])
        #expect(try await list(token, "--registered") == [pin])
        #expect(try await list(token, "--not-registered") == [Listed(Self.number, registered: false)])

        try await register(token)
        #expect(try await list(token) == [pin, Listed(Self.number)])
        #expect(try await token.audit().contains { $0.kind == "authenticator-registered" && $0.detail == Self.number })

        let transaction = try await fixture.askForPIN(type: "transfer")
        try await token.type("0815", when: .number, until: "not one of the choices, or code refused")
        try await token.type("4711", when: .number)
        #expect(try await fixture.settled(transaction).hasPrefix("approved, receipt "))
        let result = try await fixture.portal.finalResult(of: transaction)
        #expect(result.isAuthenticated && result.authenticationMethod == "push_with_custom_authenticator")
        #expect(try await fixture.server.pinFailures() == 0)

        let login = try token.begin("login", "alice", "--authenticator", Self.number)
        try await token.type("4711", when: .number)
        try await login.outcome().succeeded()
        #expect(try await token.status().loggedIn == "alice")

        // A preferred authenticator is used by a login that names none, also after a restart.
        try await token.command("authenticator", "prefer", "alice", Self.number).succeeded()
        #expect(try await list(token) == [Listed("pin"), Listed(Self.number, preferred: true)])
        try await token.kill9()
        try await token.startConnected()
        let preferred = try token.begin("login", "alice")
        try await token.type("4711", when: .number)
        try await preferred.outcome().succeeded()
      }
    }

    @Test("What is unknown or not registered is an error, and never becomes the PIN") func unknownAndUnregistered()
      async throws
    {
      try await withNumbers { fixture in
        let token = fixture.token
        for (id, number) in [("fingerprint", 9015), (Self.number, 10007), ("../pin", 9015)] {
          expectRefusal(try await token.command("login", "alice", "--authenticator", id, "--json"), number: number)
          expectRefusal(try await token.command("authenticator", "prefer", "alice", id, "--json"), number: number)
          expectRefusal(try await token.command("authenticator", "deregister", "alice", id, "--json"), number: number)
        }
        // The server has it, and this token no source for it: the server does not list it.
        expectRefusal(try await token.command("authenticator", "register", "alice", "badge", "--json"), number: 9015)
        expectRefusal(try await token.command("authenticator", "register", "alice", "pin", "--json"), number: 10004)
        expectRefusal(try await token.command("authenticator", "deregister", "alice", "pin", "--json"), number: 10008)
        #expect(try await token.status().loggedIn == nil)
        try await token.shows("idle, connected")
        #expect(try await fixture.server.pinFailures() == 0)
      }
    }

    @Test("A registration needs a hold, and can be canceled at each step") func canceledRegistration() async throws {
      try await withNumbers { fixture in
        let token = fixture.token
        let first = try token.begin("authenticator", "register", "alice", Self.number)
        try await token.type("13589")
        try await token.asks("confirmation wanted")
        try await token.press("escape", "escape")
        #expect(try await first.outcome().exit == .code(77))
        let second = try token.begin("authenticator", "register", "alice", Self.number)
        try await token.asks("confirmation wanted")
        try await token.perform(.hold)
        try await token.asks("number or other data wanted")
        try await token.press("escape", "escape")
        #expect(try await second.outcome().exit == .code(77))
        // The script refuses three digits.
        let third = try token.begin("authenticator", "register", "alice", Self.number, "--json")
        try await token.asks("confirmation wanted")
        try await token.perform(.hold)
        try await token.type("123", when: .number)
        expectRefusal(try await third.outcome(), number: 9027)
        #expect(try await list(token, "--registered") == [Listed("pin", preferred: true)])
        try await register(token, withPIN: nil)
        #expect(try await list(token, "--registered").map(\.identifier) == ["pin", Self.number])
      }
    }

    @Test("The user falls back to the PIN with Enter alone") func fallbackByChoice() async throws {
      try await withNumbers { fixture in
        let token = fixture.token
        try await register(token)
        let transaction = try await fixture.askForPIN(type: "transfer")
        try await token.asks("number or other data wanted")
        try await token.press("enter")
        try await token.type("13589")
        #expect(try await fixture.settled(transaction).hasPrefix("approved, receipt "))
        let result = try await fixture.portal.finalResult(of: transaction)
        #expect(result.isAuthenticated && result.authenticationMethod == "push_with_pin")
      }
    }

    @Test("Two wrong codes deregister the authenticator, and the request wants the PIN") func revocation() async throws
    {
      try await withNumbers { fixture in
        let token = fixture.token
        try await register(token)
        try await token.command("authenticator", "prefer", "alice", Self.number).succeeded()
        let transaction = try await fixture.askForPIN(type: "transfer")
        for _ in 1...2 {
          try await token.type("0815", when: .number, until: "not one of the choices, or code refused")
        }
        try await token.type("13589")
        #expect(try await fixture.settled(transaction).hasPrefix("approved, receipt "))
        #expect(try await fixture.portal.finalResult(of: transaction).authenticationMethod == "push_with_pin")
        #expect(
          try await list(token) == [Listed("pin", preferred: true), Listed(Self.number, registered: false)])
        #expect(try await token.audit().count { $0.kind == "authenticator-revoked" } == 1)
        #expect(try await fixture.server.pinFailures() == 0)
      }
    }

    @Test("A wrong code that ends a request without the PIN as fallback is its reason") func endOfARequest()
      async throws
    {
      try await withNumbers { fixture in
        let token = fixture.token
        try await register(token)
        let follower = try token.begin("events", "--follow", "--json")
        try await follower.output.line(with: "\"following\"")
        let transaction = try await fixture.askForPIN(type: "code-only")
        try await token.type("0815", when: .number, until: "not one of the choices, or code refused")
        try await token.type("0815", when: .number)
        let failed = try await follower.output.line(with: "\"request-failed\"")
        let info = "\"info\":{\"data\":\"not this employee number\",\"status\":4000}"
        #expect(failed.contains("\"authenticator_revoked\":true,\"code\":9027,\(info)"), "\(failed)")
        let revoked = follower.output.lines.first { $0.contains("\"authenticator-revoked\"") } ?? ""
        #expect(revoked.contains("\"code\":9022,\(info)"), "\(revoked)")
        #expect(try await fixture.settled(transaction).hasPrefix("not approved: "))
        #expect(try await !fixture.portal.finalResult(of: transaction).isAuthenticated)
        #expect(try await list(token, "--registered") == [Listed("pin", preferred: true)])
      }
    }

    @Test("A deregistered authenticator is gone on both sides") func deregistration() async throws {
      try await withNumbers { fixture in
        let token = fixture.token
        try await register(token)
        try await token.command("authenticator", "prefer", "alice", Self.number).succeeded()
        try await token.command("authenticator", "deregister", "alice", Self.number).succeeded()
        #expect(
          try await list(token) == [Listed("pin", preferred: true), Listed(Self.number, registered: false)])
        expectRefusal(
          try await token.command("login", "alice", "--authenticator", Self.number, "--json"), number: 10007)
        // Registered again, without another login.
        try await register(token, withPIN: nil)
        #expect(try await list(token, "--registered").map(\.identifier) == ["pin", Self.number])
        // Without its server, it is removed only here.
        try await fixture.server.stop()
        let outcome = try await token.command("authenticator", "deregister", "alice", Self.number, "--json").succeeded()
        #expect(outcome.output.contains("\"number\":9028"))
        #expect(outcome.output.contains(Self.number) == false)
      }
    }
  }
}
