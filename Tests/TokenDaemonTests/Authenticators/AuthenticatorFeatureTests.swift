// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import ControlProtocol
import JSONValues
import MobileAuth
import ServerBackends
import Testing

@testable import TokenDaemon

/// What an account's authenticators are, and how they are registered, preferred and deregistered, one test for each
/// row of docs/seeds.md. The events are those that programs get.
@Suite("Authenticators", .timeLimit(.minutes(5))) struct AuthenticatorFeatureTests {

  private func with(
    _ registered: Set<String> = [], _ body: (AuthenticatorFixture) async throws -> Void
  ) async throws {
    let fixture = try await AuthenticatorFixture(registered: registered)
    try await body(fixture)
    await fixture.end()
  }

  /// Whether the command `authenticators --not-registered` lists it.
  private func isRegistrable(_ entry: AuthenticatorsResponse.Entry) -> Bool { !entry.isRegistered && entry.isSupported }

  private func register(_ fixture: AuthenticatorFixture, typing code: String = "4711") async throws {
    let command = fixture.begin(.registerAuthenticator(account: "alice", identifier: "number"))
    await fixture.type(MemoryServer.rightPIN, at: 1)
    await fixture.hold(at: 2)
    await fixture.type(code, at: 3)
    try await command.finished()
  }

  @Test("Custom authenticators are offered beside the PIN") func besideThePIN() async throws {
    try await with { fixture in
      let list = try await fixture.list()
      #expect(list.map(\.kind) == ["pin", "custom", "custom"])
    }
  }

  @Test("The PIN is always available for an account that has one") func pinIsAlwaysAvailable() async throws {
    try await with { fixture in
      let pin = try #require(try await fixture.list().first)
      #expect(pin.identifier == "pin" && pin.isRegistered && pin.isSupported)
      #expect(await fixture.number(of: .deregisterAuthenticator(account: "alice", identifier: "pin")) == 10008)
    }
  }

  @Test("An authenticator is available only while this token can use it") func availability() async throws {
    try await with { fixture in
      fixture.touch.set(available: false)
      let without = try await fixture.list()
      #expect(without.filter(isRegistrable).map(\.identifier) == ["number"])
      // A reader that is plugged in later counts.
      fixture.touch.set(available: true)
      let with = try await fixture.list()
      #expect(with.filter(isRegistrable).map(\.identifier) == ["number", "touch"])
    }
  }

  @Test("The list of those that are not registered (nonRegisteredAuthenticatorsForUser)") func notRegistered()
    async throws
  {
    try await with(["number"]) { fixture in
      let list = try await fixture.list()
      #expect(list.filter(isRegistrable).map(\.identifier) == ["touch"])
    }
  }

  @Test("The list of those that are registered (registeredAuthenticatorsForUser)") func registered() async throws {
    try await with(["number"]) { fixture in
      let list = try await fixture.list()
      #expect(list.filter(\.isRegistered).map(\.identifier) == ["pin", "number"])
    }
  }

  @Test("The list of all (allAuthenticatorsForUser)") func all() async throws {
    try await with { fixture in
      let list = try await fixture.list()
      #expect(list.map(\.identifier) == ["pin", "number", "touch"])
    }
  }

  @Test("A listed authenticator is a value that does not change when the account does") func valuesDoNotChange()
    async throws
  {
    try await with { fixture in
      let before = try await fixture.list()
      try await register(fixture)
      #expect(before.map(\.isRegistered) == [true, false, false])
      #expect(try await fixture.list().map(\.isRegistered) == [true, true, false])
    }
  }

  @Test("The identifier is the server's (identifier)") func identifier() async throws {
    try await with { fixture in
      let list = try await fixture.list()
      #expect(list.map(\.identifier) == fixture.server.authenticators.map(\.identifier))
      #expect(await fixture.number(of: .registerAuthenticator(account: "alice", identifier: "Employee number")) == 9015)
    }
  }

  @Test("The name is the one that the server's operator has chosen (name)") func name() async throws {
    try await with { fixture in
      let number = try #require(try await fixture.list().first { $0.identifier == "number" })
      #expect(number.name == "Employee number" && number.kind == "custom")
    }
  }

  @Test("Whether it is registered (registered)") func isRegistered() async throws {
    try await with(["number"]) { fixture in
      let list = try await fixture.list()
      #expect(list.map(\.isRegistered) == [true, true, false])
    }
  }

  @Test("Whether it is preferred (preferred)") func isPreferred() async throws {
    try await with(["number"]) { fixture in
      _ = try await fixture.service.answer(
        .preferAuthenticator(account: "alice", identifier: "number"), as: AuthenticatorsResponse.self)
      #expect(try await fixture.list().map(\.isPreferred) == [false, true, false])
    }
  }

  // MARK: Registration

  @Test("Registering makes an authenticator usable (registerAuthenticator)") func registering() async throws {
    try await with { fixture in
      try await register(fixture)
      #expect(fixture.server.now.registered == ["number"])
      #expect(await fixture.number(of: .registerAuthenticator(account: "alice", identifier: "number")) == 10004)
      #expect(await fixture.number(of: .registerAuthenticator(account: "alice", identifier: "unknown")) == 9015)
    }
  }

  @Test("The start of a registration is reported (didStartRegisteringAuthenticator)") func startOfARegistration()
    async throws
  {
    try await with { fixture in
      try await register(fixture)
      let event = try await fixture.event("registration-started")
      #expect(event["account"]?.text == "alice" && event["authenticator"]?.text == "number")
    }
  }

  @Test("A registration is reported, with the result of the script (didRegisterAuthenticator)") func registration()
    async throws
  {
    try await with { fixture in
      try await register(fixture)
      let event = try await fixture.event("authenticator-registered")
      #expect(event["authenticator"]?.text == "number" && event["account"]?.text == "alice")
      #expect(event["info"]?["status"]?.integer == 2000 && event["info"]?["data"]?.text == "welcome")
    }
  }

  @Test(
    "The failure of a registration is reported, with number, reason and script result (didFailToRegisterAuthenticator)")
  func failureOfARegistration() async throws {
    try await with { fixture in
      await #expect(throws: TokenServerError.self) { try await register(fixture, typing: "1") }
      let failure = try #require(try await fixture.event("registration-failed")["failure"])
      #expect(failure["code"]?.integer == 9027 && failure["reason"]?.text == "the script refuses")
      #expect(failure["info"]?["status"]?.integer == 4000 && failure["info"]?["data"]?.text == "not this one")
      #expect(fixture.server.now.registered.isEmpty)
    }
  }

  @Test("A registration asks for the PIN if no user is logged in (didReceivePinChallenge)") func pinOfARegistration()
    async throws
  {
    try await with { fixture in
      try await register(fixture)
      let challenges = try await fixture.challenges(3)
      #expect(challenges.map { $0["kind"]?.text } == ["pin", "confirmation", "custom"])
      #expect(challenges[0]["authenticator"]?.text == "pin")
    }
  }

  @Test("A registration asks for the data (didReceiveCustomAuthenticatorRegistrationFinishChallenge)")
  func dataOfARegistration() async throws {
    try await with { fixture in
      try await register(fixture)
      let challenge = try await fixture.challenges(3)[2]
      #expect(challenge["kind"]?.text == "custom")
      #expect(challenge["purpose"]?.text == "registration" && challenge["authenticator"]?.text == "number")
      #expect(fixture.server.now.calls == ["registration number with 4711"])
    }
  }

  @Test("A registration needs a logged-in user, and a hold") func loggedInUser() async throws {
    try await with { fixture in
      try await fixture.logIn()
      let command = fixture.begin(.registerAuthenticator(account: "alice", identifier: "number"))
      await fixture.panel.until(challenges: 2)
      #expect(fixture.panel.prompts.last == .confirmation && fixture.server.now.calls.isEmpty)
      fixture.panel.perform(.gesture(Gesture(.doublePress, held: .zero)))
      await #expect(throws: PanelDialog.EntryError.canceled) { try await command.finished() }
      #expect(try await fixture.event("registration-failed")["failure"]?["code"]?.integer == 9006)
    }
  }

  @Test("A registered authenticator approves requests") func approvesRequests() async throws {
    try await with(["number"]) { fixture in
      let transaction = fixture.server.ask(for: "number")
      await fixture.type("4711", at: 1)
      let event = try await fixture.event("request-handled")
      #expect(event["transaction"]?.text == transaction.text && event["decision"]?.text == "accept")
      #expect(event["authenticator"]?.text == "number" && event["info"]?["data"]?.text == "welcome")
      #expect(fixture.server.now.outcomes[transaction] == .authenticated)
    }
  }

  // MARK: Preference

  @Test("Without a preference a login uses the PIN") func pinIsTheDefault() async throws {
    try await with(["number"]) { fixture in
      let login = fixture.begin(.logIn(account: "alice", authenticator: nil))
      await fixture.type(MemoryServer.rightPIN, at: 1)
      try await login.finished()
      #expect(try await fixture.event("authenticated")["authenticator"]?.text == "pin")
    }
  }

  @Test("The preferred authenticator is used by a login that names none (setPreferredAuthenticator)") func preferred()
    async throws
  {
    try await with(["number"]) { fixture in
      #expect(await fixture.number(of: .preferAuthenticator(account: "alice", identifier: "touch")) == 10007)
      #expect(await fixture.number(of: .preferAuthenticator(account: "alice", identifier: "number")) == nil)
      let login = fixture.begin(.logIn(account: "alice", authenticator: nil))
      await fixture.type("4711", at: 1)
      try await login.finished()
      #expect(try await fixture.event("authenticated")["authenticator"]?.text == "number")
    }
  }

  // MARK: Deregistration

  @Test("Deregistering removes an authenticator; the PIN is preferred again (deregisterAuthenticator)")
  func deregistering() async throws {
    try await with(["number"]) { fixture in
      #expect(await fixture.number(of: .preferAuthenticator(account: "alice", identifier: "number")) == nil)
      try await fixture.logIn()
      #expect(await fixture.number(of: .deregisterAuthenticator(account: "alice", identifier: "number")) == nil)
      #expect(try await fixture.list().map(\.isRegistered) == [true, false, false])
      #expect(try await fixture.list().map(\.isPreferred) == [true, false, false])
      #expect(await fixture.number(of: .deregisterAuthenticator(account: "alice", identifier: "number")) == 10007)
    }
  }

  @Test("The start of a deregistration is reported (didStartDeregisteringAuthenticator)") func startOfADeregistration()
    async throws
  {
    try await with(["number"]) { fixture in
      try await fixture.logIn()
      _ = await fixture.number(of: .deregisterAuthenticator(account: "alice", identifier: "number"))
      #expect(try await fixture.event("deregistration-started")["authenticator"]?.text == "number")
    }
  }

  @Test(
    "A deregistration asks an authenticator outside of the panel (didReceiveCustomAuthenticatorDeregistrationChallenge)"
  ) func challengeOfADeregistration() async throws {
    try await with(["touch"]) { fixture in
      try await fixture.logIn()
      let command = fixture.begin(.deregisterAuthenticator(account: "alice", identifier: "touch"))
      try await fixture.say(.data(AuthenticatorData("bye")))
      try await command.finished()
      let challenge = try await fixture.event(after: 1, "challenge")
      #expect(challenge["purpose"]?.text == "deregistration" && challenge["authenticator"]?.text == "touch")
    }
  }

  @Test(
    "A deregistration is reported, also if the server was not notified (didDeregisterAuthenticator)",
    arguments: [true, false])
  func deregistration(isReachable: Bool) async throws {
    try await with(["number"]) { fixture in
      try await fixture.logIn()
      fixture.server.change { $0.isReachable = isReachable }
      _ = await fixture.number(of: .deregisterAuthenticator(account: "alice", identifier: "number"))
      #expect(try await fixture.event("authenticator-deregistered")["server_notified"]?.bool == isReachable)
      #expect(fixture.server.now.registered.isEmpty)
    }
  }

  @Test("The failure of a deregistration is reported (didFailToDeregisterAuthenticator)")
  func failureOfADeregistration() async throws {
    try await with { fixture in
      _ = await fixture.number(of: .deregisterAuthenticator(account: "alice", identifier: "number"))
      let failure = try #require(try await fixture.event("deregistration-failed")["failure"])
      #expect(failure["code"]?.integer == 10007 && failure["reason"]?.text?.contains("not registered") == true)
    }
  }
}
