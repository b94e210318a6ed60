// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import MobileAuth
import Secrets
import Testing

/// Requests that are approved only after the user has typed the digits that the server has signed, such as the amount.
@Suite("Digits to type", .timeLimit(.minutes(5))) struct ReadBackTests {
  private let fixture = HandlerFixture()
  private let amount = EnteredDigits(typing: "1250")
  private let pin = PINChallenge(length: 5, counts: FailureCounts(max: 3, previous: 1))

  init() { fixture.server.set(readBack: amount) }

  private var outcomes: [String] { fixture.stateStore.outcomes(of: HandlerFixture.transaction(1)) }

  private var challenges: [ChallengeSummary] {
    fixture.events.all.compactMap { event in
      guard case .step(let step) = event, case .challenged(.request, let challenge, _) = step.event else { return nil }
      return challenge
    }
  }

  @Test("After the digits, a hold approves") func confirmation() async throws {
    try await fixture.handlesRequest {
      #expect(fixture.panel.shown.last == .numberWanted)
      fixture.panel.perform(.typed("1250"))
      await fixture.panel.until(challenges: 2)
      #expect(fixture.panel.shown.last == .confirmationWanted)
      fixture.panel.perform(accept)
    }
    #expect(fixture.panel.prompts == [.code(orEnterAlone: false), .confirmation])
    #expect(fixture.server.typedBack == [amount] && outcomes == ["approved, receipt receipt-1"])
    #expect(
      fixture.stateStore.audit.contains { $0.kind == .decided && $0.detail.hasSuffix("held 1000 ms, after the digits") }
    )
    #expect(challenges.map(\.kind) == [.readBack, .confirmation])
  }

  @Test(
    "Without the right digits nothing approves", arguments: [accept, .typed("125"), .typed("12500"), .typed("1251")])
  func withoutTheDigits(event: PanelEvent) async throws {
    try await fixture.handlesRequest {
      fixture.panel.perform(event)
      fixture.panel.perform(accept)
      fixture.panel.perform(.enteredNothing)
      if event != accept { await fixture.panel.until(challenges: 2) }
      fixture.panel.perform(deny)
    }
    #expect(fixture.server.delivered.map(\.decision) == [.deny(.declined)])
    #expect(fixture.server.typedBack == [nil] && challenges.allSatisfy { $0.kind == .readBack })
    #expect(fixture.panel.shown.contains(.noSuchChoice) == (event != accept))
  }

  /// Digits that the user types for a PIN here are compared with the amount and forgotten. Fails if they count as an
  /// attempt, or are sent.
  @Test("Wrong digits take no PIN attempt, and the PIN follows the right ones") func pinAfterwards() async throws {
    fixture.server.set(challenge: .pin(pin))
    try await fixture.handlesRequest {
      fixture.panel.perform(.typed("13579"))
      await fixture.panel.until(challenges: 2)
      #expect(fixture.server.pins.isEmpty && fixture.server.delivered.isEmpty)
      fixture.panel.perform(.typed("1250"))
      await fixture.panel.until(challenges: 3)
      fixture.panel.perform(.typed("13579"))
    }
    #expect(
      fixture.panel.prompts == [.code(orEnterAlone: false), .code(orEnterAlone: false), .digits(count: 5)])
    #expect(fixture.server.pins.count == 1 && fixture.server.typedBack == [amount])
    #expect(outcomes == ["approved, receipt receipt-1"])
    #expect(!fixture.stateStore.audit.contains { $0.kind == .pinWrong })
  }

  /// Fails if the handler takes the user for touching the panel until the request ends: requests of other servers and
  /// panel tasks would wait for as long.
  @Test("The touch ends with the digits, and the request keeps the panel for a minute", arguments: ["1251", "1250"])
  func touchEnds(digits: String) async throws {
    try await fixture.withHandler {
      fixture.announce(fixture.request(1, lives: .seconds(600)))
      await fixture.panel.until(challenges: 1)
      fixture.panel.perform(.touched)
      fixture.panel.perform(.typed(digits))
      await fixture.panel.until(challenges: 2)
      let panelTask = fixture.startPINDialog()
      let shown = fixture.clock.now
      await fixture.pass { fixture.panel.prompts.count == 3 }
      #expect(fixture.panel.prompts.last == .digits(count: 4))
      #expect(fixture.clock.now - shown >= .seconds(60))
      fixture.panel.perform(deny)
      _ = try? await panelTask.finished()
    }
  }

  @Test("After a wrong PIN, the digits are asked for again") func wrongPIN() async throws {
    fixture.server.set(challenge: .pin(pin))
    fixture.server.fail("deliver", .pinIncorrect(FailureCounts(max: 3, previous: 2)))
    try await fixture.handlesRequest {
      for (number, digits) in ["1250", "24680", "1250", "13579"].enumerated() {
        await fixture.panel.until(challenges: number + 1)
        fixture.panel.perform(.typed(digits))
      }
    }
    #expect(challenges.map(\.kind) == [.readBack, .pin, .readBack, .pin])
    #expect(fixture.server.typedBack == [amount, amount] && outcomes == ["approved, receipt receipt-1"])
  }

  @Test("The code of an authenticator follows the digits, also the PIN instead") func customAfterwards() async throws {
    fixture.server.set(challenge: .custom(CustomChallenge(authenticator: "number", fallback: pin)))
    try await fixture.handlesRequest {
      fixture.panel.perform(.typed("1250"))
      await fixture.panel.until(challenges: 2)
      fixture.panel.perform(.enteredNothing)
      await fixture.panel.until(challenges: 3)
      fixture.panel.perform(.typed("13579"))
    }
    #expect(
      fixture.panel.prompts == [.code(orEnterAlone: false), .code(orEnterAlone: true), .digits(count: 5)])
    #expect(fixture.server.data.isEmpty && fixture.server.pins.count == 1 && fixture.server.typedBack == [amount])
  }

  @Test("A request that can only be denied wants no digits") func impossible() async throws {
    fixture.server.set(challenge: .impossible(because: "no keypad"))
    try await fixture.handlesRequest { fixture.panel.perform(deny) }
    #expect(fixture.panel.prompts == [.denial] && fixture.server.delivered.map(\.decision) == [.deny(.declined)])
  }

  /// Fails if a newer request can take the hold that the user begins after the digits.
  @Test("The right digits keep the request on the panel") func keeps() async throws {
    try await fixture.withHandler {
      fixture.announce(fixture.request(1, lives: .seconds(600)))
      await fixture.panel.until(challenges: 1)
      fixture.panel.perform(.typed("1250"))
      await fixture.panel.until(challenges: 2)
      fixture.announce(fixture.request(2, lives: .seconds(600)), fixture.request(1, lives: .seconds(600)))
      await HandlerFixture.turn { fixture.server.calls(of: "open") == 2 }
      fixture.panel.perform(accept)
      await HandlerFixture.turn { fixture.server.delivered.count == 1 }
    }
    #expect(fixture.server.delivered.first?.request.pending.transaction == HandlerFixture.transaction(1))
  }
}
