// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import MobileAuth
import Secrets
import Testing

/// Requests that are approved with an authenticator outside of the panel, by its driver.
@Suite("Requests with the driver of an authenticator", .timeLimit(.minutes(5))) struct DriverChallengeTests {
  private let driver: ScriptedDriver
  private let fixture: HandlerFixture
  private let pin = PINChallenge(length: 5, counts: FailureCounts(max: 3, previous: 1))
  private let data = AuthenticatorData(SecretBytes(copying: [1, 2, 3]))
  private let digest = [UInt8](repeating: 9, count: 32)

  init() {
    driver = ScriptedDriver("key")
    fixture = HandlerFixture(drivers: AuthenticatorDrivers([driver]))
  }

  private func ask(hasFallback: Bool = true, hold: Bool = false) {
    fixture.server.set(
      challenge: .custom(
        CustomChallenge(
          authenticator: "key", fallback: hasFallback ? pin : nil, input: .external(hold: hold), server: "h",
          challenge: digest,
          registration: [7])))
  }

  /// Shows the first request, and waits until its driver is asked.
  private func show(asked count: Int = 1) async {
    fixture.announce(fixture.request(1, lives: .seconds(600)))
    await fixture.pass { driver.calls.count == count }
  }

  private var outcomes: [String] { fixture.stateStore.outcomes(of: HandlerFixture.transaction(1)) }
  private func decided() -> [String] { fixture.stateStore.audit.filter { $0.kind == .decided }.map(\.detail) }

  @Test("The driver's data approves, and is asked for only after the request is shown") func dataApproves() async throws
  {
    ask()
    try await fixture.withHandler {
      fixture.announce(fixture.request(1))
      await fixture.panel.until(challenges: 1)
      await fixture.clock.untilAsleep()
      #expect(driver.calls.isEmpty && fixture.panel.shown.last == .numberWanted)
      await fixture.pass { driver.calls.count == 1 }
      driver.say(.waiting("touch the key"))
      driver.say(.data(data))
      await fixture.panel.until(showing: .idle(pending: 0))
    }
    #expect(
      driver.calls == [
        DriverCall(
          step: .authenticate, server: "h", account: "A", authenticator: "key", challenge: digest, registration: [7])
      ])
    #expect(fixture.panel.prompts == [.authenticator(orPINOf: 5, hold: false)])
    #expect(fixture.server.data == [data] && fixture.server.pins.isEmpty)
    #expect(outcomes == ["approved, receipt receipt-1"] && decided() == ["accept by key"])
    await HandlerFixture.turn { driver.ended == 1 }
  }

  @Test("The PIN, typed meanwhile, approves and ends the driver's use") func pinInstead() async throws {
    ask()
    try await fixture.withHandler {
      await show()
      fixture.panel.perform(.typed("13579"))
      await fixture.panel.until(showing: .idle(pending: 0))
    }
    await HandlerFixture.turn { driver.ended == 1 }
    #expect(fixture.server.pins.count == 1 && fixture.server.data.isEmpty)
    #expect(decided() == ["accept by PIN"])
  }

  @Test("A denial at the panel ends the driver's use") func denial() async throws {
    ask()
    try await fixture.withHandler {
      await show()
      fixture.panel.perform(deny)
      await fixture.panel.until(showing: .idle(pending: 0))
    }
    await HandlerFixture.turn { driver.ended == 1 }
    #expect(fixture.server.delivered.map(\.decision) == [.deny(.declined)])
  }

  @Test("The driver's cancellation denies, with its reason") func cancellation() async throws {
    ask()
    try await fixture.withHandler {
      await show()
      driver.say(.canceled("the badge is blocked"))
      await fixture.panel.until(showing: .idle(pending: 0))
    }
    #expect(fixture.server.delivered.map(\.decision) == [.deny(.canceled)])
    #expect(fixture.server.delivered.map(\.underlyingError) == ["the badge is blocked"])
    #expect(decided() == ["deny by key: the badge is blocked"])
    #expect(outcomes == ["denied (cancelled), receipt receipt-1 (9006)"])
  }

  @Test("The driver's fallback asks for the PIN, and the driver no more") func fallback() async throws {
    ask()
    try await fixture.withHandler {
      await show()
      driver.say(.fallback)
      await fixture.panel.until(challenges: 2)
      #expect(fixture.panel.shown.last == .pinWanted)
      fixture.panel.perform(.typed("13579"))
      await fixture.panel.until(showing: .idle(pending: 0))
    }
    #expect(fixture.panel.prompts.last == .digits(count: 5) && driver.calls.count == 1)
    #expect(fixture.server.pins.count == 1)
  }

  @Test("Without a PIN, a fallback leaves only the denial") func fallbackWithoutPIN() async throws {
    ask(hasFallback: false)
    try await fixture.withHandler {
      await show()
      #expect(fixture.panel.prompts == [.authenticator(orPINOf: nil, hold: false)])
      driver.say(.fallback)
      await fixture.panel.until(challenges: 2)
      fixture.panel.perform(accept)
      fixture.panel.perform(deny)
      await fixture.panel.until(showing: .idle(pending: 0))
    }
    #expect(fixture.panel.prompts.last == .denial)
    #expect(fixture.server.delivered.map(\.decision) == [.deny(.declined)])
  }

  /// A driver that crashes must neither approve nor deny.
  @Test("A driver that fails is asked again, three times, then the PIN is wanted", arguments: [true, false])
  func failure(hasFallback: Bool) async throws {
    ask(hasFallback: hasFallback)
    try await fixture.withHandler {
      await show()
      driver.say(.failed("exit 1"))
      await fixture.pass { driver.calls.count == 2 }
      driver.end()
      await fixture.pass { driver.calls.count == 3 }
      driver.say(.failed("exit 1"))
      await fixture.panel.until(challenges: 4)
      #expect(fixture.server.delivered.isEmpty)
      fixture.panel.perform(deny)
      await fixture.panel.until(showing: .idle(pending: 0))
    }
    #expect(fixture.panel.prompts.last == (hasFallback ? .digits(count: 5) : .denial) && driver.calls.count == 3)
    #expect(
      fixture.stateStore.audit.filter { $0.kind == .authenticatorFailed }.map(\.detail)
        == ["key: exit 1", "key: it ended without an answer", "key: exit 1"])
  }

  @Test("A retry of the driver is shown, keeps the request, and counts nothing") func retry() async throws {
    ask()
    try await fixture.withHandler {
      await show()
      driver.say(.retry("twice, please"))
      await HandlerFixture.turn { fixture.panel.shown.suffix(2) == [.noSuchChoice, .numberWanted] }
      fixture.announce(fixture.request(2, lives: .seconds(600)), fixture.request(1, lives: .seconds(600)))
      await HandlerFixture.turn { fixture.server.calls(of: "open") == 2 }
      driver.say(.data(data))
      await HandlerFixture.turn { fixture.server.data.count == 1 }
    }
    #expect(fixture.server.delivered.first?.request.pending.transaction == HandlerFixture.transaction(1))
    #expect(!fixture.stateStore.audit.contains { $0.kind == .authenticatorFailed })
  }

  @Test("A driver that proves no act is asked only after a hold") func holdFirst() async throws {
    ask(hold: true)
    try await fixture.withHandler {
      fixture.announce(fixture.request(1, lives: .seconds(600)))
      await fixture.panel.until(challenges: 1)
      #expect(fixture.panel.shown.last == .confirmationWanted)
      fixture.clock.advance(by: .seconds(5))
      #expect(driver.calls.isEmpty)
      fixture.panel.perform(accept)
      await fixture.pass { driver.calls.count == 1 }
      #expect(fixture.panel.shown.last == .numberWanted && fixture.server.delivered.isEmpty)
      driver.say(.data(data))
      await fixture.panel.until(showing: .idle(pending: 0))
    }
    #expect(
      fixture.panel.prompts
        == [.authenticator(orPINOf: 5, hold: true), .authenticator(orPINOf: 5, hold: false)])
    #expect(decided() == ["accept by key"])
  }

  @Test("A hold alone approves nothing", arguments: [true, false]) func holdAlone(hold: Bool) async throws {
    ask(hasFallback: false, hold: hold)
    try await fixture.withHandler {
      fixture.announce(fixture.request(1, lives: .seconds(600)))
      await fixture.panel.until(challenges: 1)
      fixture.panel.perform(accept)
      if hold { await fixture.panel.until(challenges: 2) }
      fixture.panel.perform(accept)
      fixture.panel.perform(deny)
      await fixture.panel.until(showing: .idle(pending: 0))
    }
    #expect(fixture.server.delivered.map(\.decision) == [.deny(.declined)])
  }

  @Test("Data that the server refuses is asked for again, with the next challenge") func refusedData() async throws {
    ask()
    let info = AuthenticatorInfo(status: 4000, data: "")
    fixture.server.fail(
      "deliver",
      .authenticatorFailed(AuthenticatorFailure(number: 9027, reason: "custom failed", info: info, isRevoked: false)))
    try await fixture.withHandler {
      await show()
      driver.say(.data(data))
      await fixture.pass { driver.calls.count == 2 }
      driver.say(.data(data))
      await fixture.panel.until(showing: .idle(pending: 0))
    }
    #expect(outcomes == ["approved, receipt receipt-1"])
  }

  @Test("A reader that was unplugged meanwhile fails, and the PIN remains") func unplugged() async throws {
    ask()
    driver.set(available: false)
    try await fixture.withHandler {
      fixture.announce(fixture.request(1, lives: .seconds(600)))
      await fixture.pass { fixture.panel.shown.last == .pinWanted }
      fixture.panel.perform(.typed("13579"))
      await fixture.panel.until(showing: .idle(pending: 0))
    }
    #expect(driver.calls.isEmpty && fixture.server.pins.count == 1)
  }

  /// The user may have begun to type the PIN, and must not type it into a code that is sent to the server.
  @Test("A request that could be approved with the PIN does not want a typed code later") func codeLater() async throws
  {
    ask()
    fixture.server.fail("deliver", .pinIncorrect(FailureCounts(max: 3, previous: 1)))
    try await fixture.withHandler {
      await show()
      fixture.server.set(challenge: .custom(CustomChallenge(authenticator: "number", fallback: pin)))
      fixture.panel.perform(.typed("24680"))
      await fixture.panel.until(challenges: 2)
      fixture.panel.perform(.typed("13579"))
      await fixture.panel.until(showing: .idle(pending: 0))
    }
    #expect(fixture.server.data.isEmpty && fixture.server.pins.count == 2)
  }
}
