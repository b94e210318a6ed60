// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import ControlProtocol
import JSONValues
import MobileAuth
import Secrets
import ServerBackends
import Testing

@testable import TokenDaemon

/// How a custom authenticator is asked, and what its answers mean, one test for each row of
/// docs/seeds.md. The authenticator is outside of the panel: a plug-in, a badge or a key.
@Suite("Custom authenticators", .timeLimit(.minutes(5))) struct CustomAuthenticatorFeatureTests {
  private func with(
    registered: Bool = true, _ body: (AuthenticatorFixture) async throws -> Void
  ) async throws {
    let fixture = try await AuthenticatorFixture(registered: registered ? ["touch"] : [])
    try await body(fixture)
    await fixture.end()
  }

  /// Starts a registration up to the question for the authenticator.
  private func beginRegistration(_ fixture: AuthenticatorFixture) async -> Task<Void, any Error> {
    let command = fixture.begin(.registerAuthenticator(account: "alice", identifier: "touch"))
    await fixture.type(MemoryServer.rightPIN, at: 1)
    await fixture.hold(at: 2)
    return command
  }

  private func login(_ fixture: AuthenticatorFixture) -> Task<Void, any Error> {
    fixture.begin(.logIn(account: "alice", authenticator: "touch"))
  }

  private func deregister(_ fixture: AuthenticatorFixture) async throws -> Task<Void, any Error> {
    try await fixture.logIn()
    return fixture.begin(.deregisterAuthenticator(account: "alice", identifier: "touch"))
  }

  // MARK: Registration

  @Test("The data goes to the server's script") func dataGoesToTheScript() async throws {
    try await with(registered: false) { fixture in
      let command = await beginRegistration(fixture)
      try await fixture.say(.data(AuthenticatorData("4711")))
      try await command.finished()
      #expect(fixture.server.now.calls == ["registration touch with 4711"])
    }
  }

  @Test("A registration asks the authenticator (didReceiveCustomAuthFinishRegistrationChallenge)")
  func registrationChallenge() async throws {
    try await with(registered: false) { fixture in
      let command = await beginRegistration(fixture)
      try await fixture.until("the reader is asked") { fixture.touch.calls.count == 1 }
      #expect(fixture.touch.calls[0].step == .register)
      fixture.touch.say(.data(AuthenticatorData("4711")))
      try await command.finished()
    }
  }

  @Test("The challenge of a registration names the account (userProfile)") func accountOfARegistration() async throws {
    try await with(registered: false) { fixture in
      let command = await beginRegistration(fixture)
      try await fixture.say(.data(AuthenticatorData("4711")))
      try await command.finished()
      let challenge = try await fixture.challenges(3)[2]
      #expect(fixture.touch.calls[0].account == "alice" && challenge["account"]?.text == "alice")
    }
  }

  @Test("The challenge of a registration names the authenticator (authenticator)") func authenticatorOfARegistration()
    async throws
  {
    try await with(registered: false) { fixture in
      let command = await beginRegistration(fixture)
      try await fixture.say(.data(AuthenticatorData("4711")))
      try await command.finished()
      let challenge = try await fixture.challenges(3)[2]
      #expect(fixture.touch.calls[0].authenticator == "touch" && challenge["authenticator"]?.text == "touch")
    }
  }

  /// The first answer counts: one use has one answer.
  @Test("A challenge takes one answer (sender)") func oneAnswer() async throws {
    try await with(registered: false) { fixture in
      let command = await beginRegistration(fixture)
      try await fixture.say(.waiting("touch it"))
      fixture.touch.say(.retry("too short"))
      fixture.touch.say(.data(AuthenticatorData("4711")))
      fixture.touch.say(.canceled("too late"))
      try await command.finished()
      #expect(fixture.server.now.registered == ["touch"])
    }
  }

  @Test("Data completes a registration (respondWithData)") func dataOfARegistration() async throws {
    try await with(registered: false) { fixture in
      let command = await beginRegistration(fixture)
      try await fixture.say(.data(AuthenticatorData("4711")))
      try await command.finished()
      #expect(try await fixture.event("authenticator-registered")["info"]?["status"]?.integer == 2000)
    }
  }

  @Test("The authenticator cancels a registration, with a reason (cancelChallenge)") func cancelOfARegistration()
    async throws
  {
    try await with(registered: false) { fixture in
      let command = await beginRegistration(fixture)
      try await fixture.say(.canceled("the badge is blocked"))
      await #expect(throws: PanelDialog.EntryError.authenticatorCanceled("the badge is blocked")) {
        try await command.finished()
      }
      #expect(fixture.server.now.registered.isEmpty && fixture.server.now.calls.isEmpty)
    }
  }

  @Test("The reason of a cancellation is in the failure (underlyingError)") func reasonOfACancellation() async throws {
    try await with(registered: false) { fixture in
      let command = await beginRegistration(fixture)
      try await fixture.say(.canceled("the badge is blocked"))
      _ = try? await command.finished()
      let failure = try #require(try await fixture.event("registration-failed")["failure"])
      #expect(failure["code"]?.integer == 9006 && failure["underlying_error"]?.text == "the badge is blocked")
    }
  }

  // MARK: Logins and requests

  @Test("A login asks for the authenticator instead of the PIN") func insteadOfThePIN() async throws {
    try await with { fixture in
      let command = login(fixture)
      try await fixture.say(.data(AuthenticatorData("4711")))
      try await command.finished()
      #expect(fixture.panel.prompts == [.authenticator(orPINOf: 5, hold: false)])
      #expect(fixture.server.now.wrongPINs == 0)
    }
  }

  @Test("The challenge of a login names account and authenticator (didReceiveCustomAuthFinishAuthenticationChallenge)")
  func challengeOfALogin() async throws {
    try await with { fixture in
      let command = login(fixture)
      try await fixture.say(.data(AuthenticatorData("4711")))
      try await command.finished()
      let challenge = try await fixture.challenges(1)[0]
      #expect(challenge["purpose"]?.text == "login" && challenge["authenticator"]?.text == "touch")
      #expect(challenge["account"]?.text == "alice" && fixture.touch.calls.map(\.step) == [.authenticate])
    }
  }

  @Test("Data logs in, and the result of the script is reported (respondWithData)") func dataOfALogin() async throws {
    try await with { fixture in
      let command = login(fixture)
      try await fixture.say(.data(AuthenticatorData("4711")))
      try await command.finished()
      let event = try await fixture.event("authenticated")
      #expect(event["authenticator"]?.text == "touch" && event["info"]?["data"]?.text == "welcome")
      #expect(fixture.service.service.session?.account == MemoryServer.account)
    }
  }

  @Test("The authenticator falls back to the PIN in a login (respondWithPinFallbackForChallenge)")
  func fallbackOfALogin() async throws {
    try await with { fixture in
      let command = login(fixture)
      try await fixture.say(.fallback)
      await fixture.type(MemoryServer.rightPIN, at: 2)
      try await command.finished()
      #expect(try await fixture.event("authenticated")["authenticator"]?.text == "pin")
      // A fallback inherits no failure.
      let challenge = try await fixture.challenges(2)[1]
      #expect(challenge["kind"]?.text == "pin" && challenge["failure"] == nil)
    }
  }

  @Test("The authenticator falls back to the PIN in a request") func fallbackOfARequest() async throws {
    try await with { fixture in
      let transaction = fixture.server.ask(for: "touch")
      try await fixture.say(.fallback)
      await fixture.type(MemoryServer.rightPIN, at: 2)
      #expect(try await fixture.event("request-handled")["authenticator"]?.text == "pin")
      #expect(fixture.server.now.outcomes[transaction] == .authenticated)
    }
  }

  @Test("The authenticator cancels a login, with a reason (cancelChallenge)") func cancelOfALogin() async throws {
    try await with { fixture in
      let command = login(fixture)
      try await fixture.say(.canceled("no finger"))
      await #expect(throws: PanelDialog.EntryError.authenticatorCanceled("no finger")) { try await command.finished() }
      let failure = try #require(try await fixture.event("authentication-failed")["failure"])
      #expect(failure["code"]?.integer == 9006 && failure["underlying_error"]?.text == "no finger")
    }
  }

  @Test("The authenticator cancels a request: it is denied, with the reason") func cancelOfARequest() async throws {
    try await with { fixture in
      let transaction = fixture.server.ask(for: "touch")
      try await fixture.say(.canceled("no finger"))
      let failure = try #require(try await fixture.event("request-failed")["failure"])
      #expect(failure["code"]?.integer == 9006 && failure["underlying_error"]?.text == "no finger")
      #expect(fixture.server.now.outcomes[transaction] == .rejected)
      #expect(fixture.server.now.calls == ["denied: no finger"])
    }
  }

  @Test("After trouble with the authenticator, the PIN can be typed or the request denied", arguments: [true, false])
  func trouble(isDenied: Bool) async throws {
    try await with { fixture in
      let transaction = fixture.server.ask(for: "touch")
      try await fixture.say(.failed("no reader"))
      try await fixture.until("the reader is asked again") { fixture.touch.calls.count == 2 }
      if isDenied {
        fixture.panel.perform(.gesture(Gesture(.doublePress, held: .zero)))
      } else {
        fixture.panel.perform(.typed(MemoryServer.rightPIN))
      }
      try await fixture.until("an outcome") { fixture.server.now.outcomes[transaction] != nil }
      #expect(fixture.server.now.outcomes[transaction] == (isDenied ? .rejected : .authenticated))
    }
  }

  /// The result of the script is in the challenge that follows, and in the event of success.
  @Test("The result of the script comes with success and with failures (CustomInfo)") func resultOfTheScript()
    async throws
  {
    try await with { fixture in
      _ = fixture.server.ask(for: "touch")
      try await fixture.say(.data(AuthenticatorData("0000")))
      try await fixture.until("a second challenge") { fixture.touch.calls.count == 2 }
      let failure = try #require(try await fixture.challenges(2)[1]["failure"])
      #expect(failure["code"]?.integer == 9027 && failure["info"]?["status"]?.integer == 4000)
      fixture.touch.say(.data(AuthenticatorData("4711")))
      #expect(try await fixture.event("request-handled")["info"]?["status"]?.integer == 2000)
    }
  }

  // MARK: Deregistration

  @Test("A deregistration asks the authenticator (didReceiveCustomAuthDeregistrationChallenge)")
  func deregistrationChallenge() async throws {
    try await with { fixture in
      let command = try await deregister(fixture)
      try await fixture.say(.data(AuthenticatorData("bye")))
      try await command.finished()
      #expect(fixture.touch.calls.map(\.step) == [.deregister])
    }
  }

  @Test("The challenge of a deregistration names account and authenticator (userProfile, authenticator)")
  func namesOfADeregistration() async throws {
    try await with { fixture in
      let command = try await deregister(fixture)
      try await fixture.say(.data(AuthenticatorData("bye")))
      try await command.finished()
      #expect(fixture.touch.calls[0].account == "alice" && fixture.touch.calls[0].authenticator == "touch")
      #expect(try await fixture.challenges(2)[1]["purpose"]?.text == "deregistration")
    }
  }

  @Test("Data completes a deregistration (respondWithData)") func dataOfADeregistration() async throws {
    try await with { fixture in
      let command = try await deregister(fixture)
      try await fixture.say(.data(AuthenticatorData("bye")))
      try await command.finished()
      #expect(fixture.server.now.calls == ["deregistration touch with bye"] && fixture.server.now.registered.isEmpty)
    }
  }

  @Test("The authenticator cancels a deregistration, with a reason (cancelChallenge)") func cancelOfADeregistration()
    async throws
  {
    try await with { fixture in
      let command = try await deregister(fixture)
      try await fixture.say(.canceled("not mine"))
      await #expect(throws: PanelDialog.EntryError.authenticatorCanceled("not mine")) { try await command.finished() }
      let failure = try #require(try await fixture.event("deregistration-failed")["failure"])
      #expect(failure["code"]?.integer == 9006 && failure["reason"]?.text?.contains("not mine") == true)
      #expect(fixture.server.now.registered == ["touch"])
    }
  }
}

extension AuthenticatorData {
  /// The data of these bytes.
  init(_ text: String) { self.init(SecretBytes(copying: Array(text.utf8))) }
}
