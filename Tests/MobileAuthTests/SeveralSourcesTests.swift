// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import MobileAuth
import Secrets
import Testing

/// Requests that a finger, a badge or the PIN approves: whatever comes first.
@Suite("Requests with several authenticators", .timeLimit(.minutes(5))) struct SeveralSourcesTests {
  private let reader = ScriptedDriver("finger", kind: .biometric)
  private let badge = ScriptedDriver("badge", hold: true)
  private let fixture: HandlerFixture
  private let pin = PINChallenge(length: 5, counts: FailureCounts(max: 3, previous: 0))
  private let data = AuthenticatorData(SecretBytes(copying: [1, 2, 3]))
  private let match = DriverEvent.data(AuthenticatorData(SecretBytes(copying: [])))

  init() { fixture = HandlerFixture(drivers: AuthenticatorDrivers([FingerprintDriver(reader), badge])) }

  private static let sources = [
    AuthenticatorSource(
      authenticator: "finger", kind: .biometric, input: .external(hold: false), challenge: [1], registration: [7]),
    AuthenticatorSource(
      authenticator: "badge", kind: .custom, input: .external(hold: true), challenge: [2], registration: [8]),
  ]

  /// Shows a request that takes both, and waits until the finger is asked for.
  private func handle(hasFallback: Bool = true, _ body: () async throws -> Void) async throws {
    let challenge = try #require(CustomChallenge(Self.sources, fallback: hasFallback ? pin : nil, server: "h"))
    fixture.server.set(challenge: .custom(challenge))
    try await fixture.withHandler {
      fixture.announce(fixture.request(1, lives: .seconds(600)))
      await fixture.pass { reader.calls.count == 1 }
      try await body()
      await fixture.panel.until(showing: .idle(pending: 0))
    }
  }

  private func decided() -> [String] { fixture.stateStore.audit.filter { $0.kind == .decided }.map(\.detail) }

  @Test("The finger approves, and the badge is not asked without a hold") func finger() async throws {
    try await handle {
      #expect(fixture.panel.shown.last == .numberWanted && badge.calls.isEmpty)
      reader.say(match)
      reader.end()
    }
    #expect(fixture.panel.prompts == [.authenticator(orPINOf: 5, hold: true)] && decided() == ["accept by finger"])
    #expect(fixture.server.delivered.map(\.source) == ["finger"])
  }

  @Test("After a hold the badge approves, with its own challenge, and the finger is still asked") func badgeApproves()
    async throws
  {
    try await handle {
      fixture.panel.perform(accept)
      await fixture.pass { badge.calls.count == 1 && reader.calls.count == 2 }
      badge.say(.data(data))
    }
    #expect(badge.calls.map(\.challenge) == [[2]] && badge.calls.map(\.registration) == [[8]])
    #expect(fixture.panel.prompts.last == .authenticator(orPINOf: 5, hold: false))
    #expect(decided() == ["accept by badge"] && fixture.server.data == [data])
    await HandlerFixture.turn { reader.ended == 2 }
    #expect(fixture.server.delivered.map(\.source) == ["badge"])
  }

  /// Fails if a badge that lies on its reader, or the next finger, approves what was not visible.
  @Test("While the LED is dark none is asked, and afterwards the request is announced again") func dark() async throws {
    try await handle {
      fixture.panel.perform(.dark("the chip is unplugged"))
      await HandlerFixture.turn { reader.ended == 1 }
      fixture.panel.perform(.typing(false))
      fixture.panel.perform(.unavailable("settle"))
      await HandlerFixture.turn { fixture.stateStore.audit.last?.detail == "settle" }
      await fixture.pass { fixture.clock.sleeping == 1 }
      for _ in 0..<20 {
        fixture.clock.advance(by: .milliseconds(500))
        for _ in 0..<100 { await Task.yield() }
      }
      #expect(reader.calls.count == 1 && fixture.panel.prompts.count == 1)
      #expect(!fixture.panel.shown.contains(.anotherRequest))
      fixture.panel.perform(.lit)
      fixture.panel.breakPrompt()
      await fixture.pass { reader.calls.count == 2 }
      #expect(fixture.panel.shown.suffix(2) == [.anotherRequest, .numberWanted])
      reader.say(match)
      reader.end()
    }
    #expect(decided() == ["accept by finger"])
  }

  @Test("The PIN or a denial ends the uses of both", arguments: [PanelEvent.typed("13579"), deny])
  func panel(event: PanelEvent) async throws {
    try await handle {
      fixture.panel.perform(accept)
      await fixture.pass { badge.calls.count == 1 && reader.calls.count == 2 }
      fixture.panel.perform(event)
    }
    await HandlerFixture.turn { reader.ended == 2 && badge.ended == 1 }
    #expect(fixture.server.delivered.count == 1 && fixture.server.data.isEmpty)
  }

  @Test("Three strangers end the fingerprint's registration, and leave the badge and the PIN") func strangers()
    async throws
  {
    try await handle {
      for count in 1...3 {
        await fixture.pass { reader.calls.count == count }
        reader.say(.canceled(FingerprintDriver.noMatch))
        reader.end()
      }
      await fixture.panel.until(challenges: 2)
      #expect(fixture.panel.shown.last == .confirmationWanted)
      fixture.panel.perform(accept)
      await fixture.pass { badge.calls.count == 1 }
      badge.say(.data(data))
    }
    #expect(fixture.server.revoked == ["finger of A: 3 fingers did not match"])
    #expect(reader.calls.count == 3 && decided() == ["accept by badge"])
  }

  /// Fails if the failure of one ends the use of the other: a badge that lies there would have to be presented again.
  @Test("A reader that fails is asked three times, and the badge meanwhile is asked once") func failsBesideTheBadge()
    async throws
  {
    func failures() -> Int { fixture.stateStore.audit.count { $0.kind == .authenticatorFailed } }
    try await handle {
      fixture.panel.perform(accept)
      await fixture.pass { badge.calls.count == 1 && reader.calls.count == 2 }
      for count in 1...3 {
        reader.say(.failed("unplugged"))
        reader.end()
        await fixture.pass { failures() == count && reader.calls.count == min(2 + count, 4) }
      }
      badge.say(.data(data))
    }
    #expect(badge.calls.count == 1 && reader.calls.count == 4 && decided() == ["accept by badge"])
    #expect(fixture.panel.shown.count { $0 == .noSuchChoice } == 3)
  }

  @Test("What fails is asked no more, and at last the PIN is wanted") func failures() async throws {
    try await handle {
      reader.say(.canceled(FingerprintDriver.noFinger))
      reader.end()
      await fixture.panel.until(challenges: 2)
      fixture.panel.perform(accept)
      for count in 1...3 {
        await fixture.pass { badge.calls.count == count }
        badge.say(.failed("exit 1"))
      }
      await fixture.pass { fixture.panel.shown.last == .pinWanted }
      fixture.panel.perform(.typed("13579"))
    }
    #expect(reader.calls.count == 1 && fixture.server.pins.count == 1 && decided() == ["accept by PIN"])
    #expect(fixture.server.revoked.isEmpty)
  }

  @Test("A reader that is not there is no failure as long as another one is") func missing() async throws {
    badge.set(available: false)
    try await handle {
      fixture.panel.perform(accept)
      await fixture.pass { reader.calls.count == 2 }
      reader.say(match)
      reader.end()
    }
    #expect(badge.calls.isEmpty && !fixture.stateStore.audit.contains { $0.kind == .authenticatorFailed })
  }

  @Test("The badge cancels: the request is denied with its reason") func canceled() async throws {
    try await handle(hasFallback: false) {
      fixture.panel.perform(accept)
      await fixture.pass { badge.calls.count == 1 }
      badge.say(.canceled("blocked"))
    }
    #expect(fixture.server.delivered.map(\.underlyingError) == ["blocked"] && decided() == ["deny by badge: blocked"])
  }

  @Test("Programs that follow the token are notified of both") func events() async throws {
    try await handle {
      reader.say(match)
      reader.end()
    }
    let challenges = fixture.events.all.compactMap { event -> (ChallengeSummary, String?)? in
      guard case .step(let step) = event, case .challenged(_, let summary, _) = step.event else { return nil }
      return (summary, step.authenticator)
    }
    #expect(challenges.map(\.0) == [ChallengeSummary(.biometric, alternatives: ["badge"], takesPIN: true)])
    #expect(challenges.map(\.1) == ["finger"])
  }

  /// Fails if a server can start as many programs as its request has copies.
  @Test("A driver that is named many times is asked once, and many different ones within the bound")
  func copies() async throws {
    let copies = [AuthenticatorSource](repeating: Self.sources[0], count: 300)
    let challenge = try #require(CustomChallenge(copies, fallback: pin, server: "h"))
    #expect(challenge.sources == [Self.sources[0]])
    let others = (1...300).map {
      AuthenticatorSource(authenticator: "a\($0)", kind: .custom, input: .external(hold: false))
    }
    let many = try #require(CustomChallenge(others, fallback: pin, server: "h"))
    #expect(many.sources == Array(others.prefix(AuthenticatorDrivers.most)))
    fixture.server.set(challenge: .custom(challenge))
    try await fixture.withHandler {
      fixture.announce(fixture.request(1, lives: .seconds(600)))
      await fixture.pass { !reader.calls.isEmpty }
      for _ in 0..<1000 { await Task.yield() }
      reader.say(match)
      reader.end()
      await fixture.panel.until(showing: .idle(pending: 0))
    }
    #expect(reader.calls.count == 1 && decided() == ["accept by finger"])
  }

  /// Digits could be the code, which is sent to the server, or the PIN.
  @Test("A typed code is only taken if nothing else can answer") func codes() throws {
    let code = AuthenticatorSource(authenticator: "number", kind: .custom, input: .keypadCode)
    let mixed = try #require(CustomChallenge([code] + Self.sources, fallback: pin, server: "h"))
    #expect(mixed.sources == Self.sources && mixed.code == nil)
    #expect(CustomChallenge([code, code], fallback: nil, server: "h")?.sources == [code])
    #expect(CustomChallenge([], fallback: pin, server: "h") == nil)
  }
}
