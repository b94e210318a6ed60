// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import ControlProtocol
import JSONValues
import MobileAuth
import ServerBackends
import Testing

@testable import TokenDaemon

/// Logins with a custom authenticator that end with the PIN, and what commands say of its script; see
/// `CustomAuthenticatorFeatureTests`.
@Suite("Logins with custom authenticators", .timeLimit(.minutes(5))) struct LoginFeatureTests {
  private func with(
    _ registered: Set<String> = ["touch"], _ body: (AuthenticatorFixture) async throws -> Void
  ) async throws {
    let fixture = try await AuthenticatorFixture(registered: registered)
    try await body(fixture)
    await fixture.end()
  }

  private func login(_ fixture: AuthenticatorFixture) -> Task<Void, any Error> {
    fixture.begin(.logIn(account: "alice", authenticator: "touch"))
  }

  @Test("The user types the PIN in a login instead") func pinInALogin() async throws {
    try await with { fixture in
      let command = login(fixture)
      try await fixture.until("the reader is asked") { fixture.touch.calls.count == 1 }
      fixture.panel.perform(.typed(MemoryServer.rightPIN))
      try await command.finished()
      #expect(try await fixture.event("authenticated")["authenticator"]?.text == "pin")
      #expect(try await fixture.challenges(1)[0]["fallbacks"]?.list?.compactMap(\.text) == ["pin"])
    }
  }

  @Test(
    "After trouble with the authenticator, or its revocation, a login wants the PIN and says why",
    arguments: [true, false])
  func troubleInALogin(isRevoked: Bool) async throws {
    try await with { fixture in
      let command = login(fixture)
      if isRevoked {
        try await fixture.say(.data(AuthenticatorData("5000")))
      } else {
        for attempt in 1...3 { try await fixture.say(.failed("no reader"), at: attempt) }
      }
      let prompts = isRevoked ? 2 : 4
      await fixture.type(MemoryServer.rightPIN, at: prompts)
      try await command.finished()
      let challenge = try await fixture.challenges(prompts)[prompts - 1]
      #expect(challenge["kind"]?.text == "pin" && challenge["authenticator"]?.text == "pin")
      let failure = try #require(challenge["failure"])
      #expect(failure["info"]?["status"]?.integer == (isRevoked ? 5000 : nil))
      #expect(failure["reason"]?.text == (isRevoked ? "the script refuses" : "no reader"))
      #expect(try await fixture.event("authenticated")["authenticator"]?.text == "pin")
    }
  }

  @Test("The result of the script is in the answers of the commands, and in their errors") func resultInCommands()
    async throws
  {
    try await with { fixture in
      let welcome = ScriptInfo(status: 2000, data: "welcome")
      let login = Task {
        try await fixture.service.answer(
          .logIn(account: "alice", authenticator: "touch"), as: SessionResponse.self)
      }
      try await fixture.say(.data(AuthenticatorData("4711")))
      #expect(try await login.finished().info == welcome)
      let registration = ControlRequest.registerAuthenticator(account: "alice", identifier: "number")
      let refused = Task { try await fixture.service.answer(registration, as: AuthenticatorsResponse.self) }
      // The session is not of the PIN.
      await fixture.type(MemoryServer.rightPIN, at: 2)
      await fixture.hold(at: 3)
      await fixture.type("0000", at: 4)
      do {
        try await refused.finished()
        Issue.record("no error")
      } catch {
        let failure = try #require(CommandError(explaining: error))
        #expect(ControlFailure(failure).info == ScriptInfo(status: 4000, data: "not this one"))
        #expect(failure.number == 9027)
      }
      let registered = Task { try await fixture.service.answer(registration, as: AuthenticatorsResponse.self) }
      await fixture.hold(at: 5)
      await fixture.type("4711", at: 6)
      #expect(try await registered.finished().info == welcome)
    }
  }

  /// Fails if who has the weakest authenticator replaces the strongest.
  @Test("In a session of another authenticator, a registration and a deregistration want the PIN first")
  func weakerSession() async throws {
    try await with { fixture in
      let command = login(fixture)
      try await fixture.say(.data(AuthenticatorData("4711")))
      try await command.finished()
      let registration = fixture.begin(.registerAuthenticator(account: "alice", identifier: "number"))
      await fixture.type(MemoryServer.rightPIN, at: 2)
      await fixture.hold(at: 3)
      await fixture.type("4711", at: 4)
      try await registration.finished()
      let challenges = try await fixture.challenges(4)
      #expect(challenges.map { $0["kind"]?.text } == ["custom", "pin", "confirmation", "custom"])
      // The session of the PIN is enough from now on.
      #expect(fixture.service.service.session?.isOfPIN(of: MemoryServer.account) == true)
      #expect(await fixture.number(of: .deregisterAuthenticator(account: "alice", identifier: "number")) == nil)
      #expect(fixture.panel.prompts.count == 4 && fixture.server.now.registered == ["touch"])
    }
    try await with(["touch", "number"]) { fixture in
      let command = login(fixture)
      try await fixture.say(.data(AuthenticatorData("4711")))
      try await command.finished()
      let deregistration = fixture.begin(.deregisterAuthenticator(account: "alice", identifier: "number"))
      await fixture.type(MemoryServer.rightPIN, at: 2)
      try await deregistration.finished()
      #expect(fixture.server.now.registered == ["touch"])
    }
  }

  @Test("In its own session, an authenticator is deregistered without the PIN") func ownSession() async throws {
    try await with { fixture in
      let command = login(fixture)
      try await fixture.say(.data(AuthenticatorData("4711")))
      try await command.finished()
      let deregistration = fixture.begin(.deregisterAuthenticator(account: "alice", identifier: "touch"))
      try await fixture.say(.data(AuthenticatorData("bye")), at: 2)
      try await deregistration.finished()
      #expect(fixture.server.now.registered.isEmpty)
      #expect(try await fixture.challenges(2).map { $0["kind"]?.text } == ["custom", "custom"])
    }
  }

  @Test("A logout ends the session here, also if the server is not notified", arguments: [true, false])
  func logout(isReachable: Bool) async throws {
    try await with { fixture in
      try await fixture.logIn()
      fixture.server.change { $0.isReachable = isReachable }
      let response = try await fixture.service.answer(.logOut, as: SessionResponse.self)
      #expect(response.serverNotified == isReachable && fixture.service.service.session == nil)
      #expect(try await fixture.event("logged-out")["server_notified"]?.bool == isReachable)
    }
  }
}
