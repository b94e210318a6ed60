// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import ProgramHarness
import Testing

extension EndToEnd {
  /// A fingerprint beside the PIN, with the simulated reader.
  @Suite struct Fingerprints {
    static let settings = "max_pin_attempts = 3\nbiometric = true"
    static let types = """
      [[authenticator]]
      id = "finger"
      name = "Fingerprint"
      kind = "biometric"
      [[type]]
      name = "transfer"
      method = "push_with_fingerprint"
      request_expires_in = 600

      """

    private func withFinger(_ body: @escaping (EndToEndFixture) async throws -> Void) async throws {
      try await withPINScene(
        settings: Self.settings, types: Self.types,
        configuration: { _ in "[authenticators]\nsimulated_fingerprint = \"finger\"\n" }
      ) { fixture in
        try await fixture.token.registerFinger { _ in try await fixture.token.present("index") }
        #expect(try await fixture.server.account()?.authenticators == ["finger"])
        try await body(fixture)
      }
    }

    private struct Listed: Decodable {
      let identifier: String
      let kind: String
      let registered: Bool
    }

    private struct List: Decodable { let authenticators: [Listed] }

    private func registered(_ token: TestToken) async throws -> [String] {
      let list = try await token.command("authenticators", "alice", "--registered", "--json").succeeded()
      return try list.decoded(List.self).authenticators.map { "\($0.identifier) \($0.kind)" }
    }

    /// Starts a request and answers it.
    /// - Returns: the method that the portal reports.
    private func method(_ fixture: EndToEndFixture, _ answer: () async throws -> Void) async throws -> String? {
      let transaction = try await fixture.askForPIN(type: "transfer")
      try await answer()
      #expect(try await fixture.settled(transaction).hasPrefix("approved, receipt "))
      let result = try await fixture.portal.finalResult(of: transaction)
      #expect(result.isAuthenticated)
      return result.authenticationMethod
    }

    @Test("A finger approves and logs in; the PIN does, too; a scan that fails is no attempt")
    func fingerFromEndToEnd() async throws {
      try await withFinger { fixture in
        let token = fixture.token
        #expect(try await registered(token) == ["pin pin", "finger biometric"])
        #expect(try await method(fixture) { try await token.present("index") } == "push_with_fingerprint")
        #expect(try await token.audit().contains { $0.kind == "decided" && $0.detail == "accept by finger" })
        let retried = try await method(fixture) {
          for _ in 1...4 { try await token.presentWhenAsked(.init(retry: "not centered")) }
          try await token.present("stranger")
          try await token.present("index")
        }
        #expect(retried == "push_with_fingerprint")
        #expect(try await method(fixture) { try await token.type("13589", when: .number) } == "push_with_pin")

        let denied = try await fixture.askForPIN(type: "transfer")
        try await token.shows("number or other data wanted")
        try await token.answer(denied, with: .double)
        #expect(try await fixture.settled(denied).hasPrefix("denied (declined)"))

        try await token.command("authenticator", "prefer", "alice", "finger").succeeded()
        let login = try token.begin("login", "alice")
        try await token.present("index")
        try await login.outcome().succeeded()
        #expect(try await token.status().loggedIn == "alice")
        #expect(try await fixture.server.pinFailures() == 0)
        try await token.command("authenticator", "deregister", "alice", "finger").succeeded()
        #expect(try await registered(token) == ["pin pin"])
      }
    }

    /// Fails if an attacker with the board, without the PIN, can use the finger's token.
    @Test("Without power the finger waits for the PIN, which makes it usable again") func withoutPower() async throws {
      try await withFinger { fixture in
        let token = fixture.token
        try await token.kill9()
        try await token.startConnected()
        let login = try await token.command("login", "alice", "--authenticator", "finger", "--json")
        #expect(login.errors.contains("\"number\":10006"), "\(login)")
        #expect(try await method(fixture) { try await token.type("13589") } == "push_with_pin")
        #expect(try await method(fixture) { try await token.present("index") } == "push_with_fingerprint")
        #expect(try await fixture.server.pinFailures() == 0)
      }
    }

    @Test("Three fingers that do not match leave the PIN, and end the registration here and at the server")
    func threeStrangers() async throws {
      try await withFinger { fixture in
        let token = fixture.token
        let answered = try await method(fixture) {
          for _ in 1...3 { try await token.present("stranger") }
          try await token.type("13589")
        }
        #expect(answered == "push_with_pin")
        #expect(try await registered(token) == ["pin pin"])
        #expect(
          try await token.audit().contains {
            $0.kind == "authenticator-revoked" && $0.detail == "finger: 3 fingers did not match"
          })
        _ = try await eventually("the server has deregistered it") {
          try await fixture.server.account()?.authenticators == [] ? true : nil
        }
        // The wrong fingers cost no attempt of the PIN.
        #expect(try await fixture.server.pinFailures() == 0)
        try await token.registerFinger { _ in try await token.present("thumb") }
        #expect(try await method(fixture) { try await token.present("thumb") } == "push_with_fingerprint")
      }
    }

    /// Fails if pulling the plug gives more tries with other fingers.
    @Test("A power loss after two wrong fingers leaves the PIN, without which there is no further try")
    func powerLossBetweenTries() async throws {
      try await withFinger { fixture in
        let token = fixture.token
        let transaction = try await fixture.askForPIN(type: "transfer")
        for _ in 1...2 { try await token.present("stranger") }
        try await token.kill9()
        try await token.startConnected()
        try await token.asks("PIN wanted")
        #expect(try await token.command("simulate", "finger", "index").succeeded().output.contains("ignored"))
        try await token.type("13589")
        #expect(try await fixture.settled(transaction).hasPrefix("approved, receipt "))
        #expect(try await method(fixture) { try await token.present("index") } == "push_with_fingerprint")
        #expect(try await fixture.server.pinFailures() == 0)
      }
    }

    @Test(
      "A power loss at the third wrong finger leaves no finger that can be used without the PIN",
      arguments: [0, 5, 40, 400])
    func powerLossAtTheLastTry(milliseconds: Int) async throws {
      try await withFinger { fixture in
        let token = fixture.token
        let transaction = try await fixture.askForPIN(type: "transfer")
        for _ in 1...3 { try await token.present("stranger") }
        try await Task.sleep(for: .milliseconds(milliseconds))
        try await token.kill9()
        try await token.startConnected()
        try await token.asks("PIN wanted")
        try await token.type("13589")
        #expect(try await fixture.settled(transaction).hasPrefix("approved, receipt "))
        #expect(try await fixture.server.pinFailures() == 0)
        if try await registered(token) == ["pin pin"] {
          try await token.registerFinger { _ in try await token.present("index") }
        }
        #expect(try await method(fixture) { try await token.present("index") } == "push_with_fingerprint")
      }
    }

    @Test("The portal disables the fingerprint; the PIN remains") func disabledByPortal() async throws {
      try await withFinger { fixture in
        let token = fixture.token
        let path = "/users/alice/devices/\(fixture.device)/disableFingerprint"
        #expect(try await fixture.portal.call("POST", path).status == 204)
        _ = try await eventually("the token has removed it") {
          try await token.audit().contains { $0.kind == "authenticator-revoked" } ? true : nil
        }
        #expect(try await registered(token) == ["pin pin"])
        #expect(try await fixture.portal.call("POST", path).status == 204)
        try await fixture.expectApproval(typing: "13589")
      }
    }

    @Test("A PIN change ends the registration, and a wrong PIN registers nothing") func pinChange() async throws {
      try await withFinger { fixture in
        let token = fixture.token
        try await fixture.changePIN(from: "13589", to: "80261")
        #expect(try await registered(token) == ["pin pin"])
        let registration = try token.begin("authenticator", "register", "alice", "finger")
        try await token.asks("confirmation wanted")
        try await token.perform(.hold)
        try await token.present("index")
        try await token.type("13589", until: TestToken.pinWrong)
        #expect(try await registered(token) == ["pin pin"])
        try await token.type("80261")
        try await registration.outcome().succeeded()
        #expect(try await registered(token) == ["pin pin", "finger biometric"])
      }
    }
  }
}

extension TestToken {
  /// Puts a finger on the simulated reader, as soon as it is asked.
  func present(_ finger: String) async throws { try await presentWhenAsked(.init(finger: finger)) }

  /// Registers alice's finger with her PIN. Logs in with it on the way, if no user is logged in.
  func registerFinger(_ present: (ChildProcess) async throws -> Void) async throws {
    let isLoggedIn = try await status().loggedIn == "alice"
    let registration = try begin("authenticator", "register", "alice", "finger")
    if !isLoggedIn { try await type("13589") }
    try await asks("confirmation wanted")
    try await perform(.hold)
    try await present(registration)
    try await type("13589")
    try await registration.outcome().succeeded()
  }
}
