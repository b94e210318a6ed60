// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import Secrets
import Testing

@testable import MobileAuth

@Suite(.timeLimit(.minutes(5))) struct ChoiceTests {
  private let fixture = HandlerFixture()
  private static let counts = FailureCounts(max: 2, previous: 0)

  private func typed(_ digits: String) -> PanelEvent { .typed(digits) }

  private func want(_ options: [String], pin: PINChallenge? = nil) throws {
    let challenge = try #require(ChoiceChallenge(options: options, counts: Self.counts, pin: pin))
    fixture.server.set(challenge: .choice(challenge))
  }

  @Test(
    "Numbers are typed and all else is chosen by position",
    arguments: [
      (["17", "42", "93"], 2...2, "42", "42"), (["M", "H", "A"], 1...1, "2", "H"),
      (["3", "10", "1"], 1...2, "1", "1"), (["3", "10", "1"], 1...2, "10", "10"), (["07", "7"], 1...2, "07", "07"),
      (["1", "2025", "31"], 1...4, "2025", "2025"), (["1", "12345"], 1...1, "2", "12345"),
      (["dark blue", "Größe", "a|b"], 1...1, "3", "a|b"),
      (["07", "7 ", "8"], 1...1, "2", "7 "), ((1...10).map { "text \($0)" }, 1...1, "0", "text 10"),
    ] as [([String], ClosedRange<Int>, String, String)])
  func numbersAreTypedAndAllElseIsChosenByPosition(
    options: [String], digits: ClosedRange<Int>, keys: String, chosen: String
  ) async throws {
    try want(options)
    try await fixture.withHandler {
      fixture.announce(fixture.request(1))
      await fixture.panel.until(challenges: 1)
      fixture.panel.perform(typed(keys))
      await fixture.panel.until(showing: .idle(pending: 0))
    }
    #expect(fixture.panel.prompts == [.digits(counts: digits)])
    #expect(fixture.panel.shown.contains(.numberWanted))
    #expect(fixture.server.choices == [chosen] && fixture.server.pins.isEmpty)
    #expect(fixture.stateStore.audit.contains { $0.kind == .decided && $0.detail == "accept by choice" })
  }

  /// Fails if what the user types changes its meaning from login to login with the lengths of the numbers.
  @Test("The keys of numbers are the numbers", arguments: [["3", "10", "1"], ["8", "2", "6"], ["0", "00", "0000"]])
  func keysOfNumbers(options: [String]) throws {
    let challenge = try #require(ChoiceChallenge(options: options, counts: Self.counts))
    #expect(challenge.keys == options && challenge.explanation == options.joined(separator: ", "))
  }

  /// Only an offered number approves: neither a press nor another number. A typing error costs no attempt.
  @Test("What is no choice is asked for again") func whatIsNoChoiceIsAskedForAgain() async throws {
    try want(["17", "42", "93"])
    try await fixture.withHandler {
      fixture.announce(fixture.request(1))
      await fixture.panel.until(challenges: 1)
      fixture.panel.perform(accept)
      fixture.panel.perform(typed("71"))
      await fixture.panel.until(challenges: 2)
      #expect(fixture.panel.shown.contains(.noSuchChoice))
      fixture.panel.perform(typed("17"))
      await fixture.panel.until(showing: .idle(pending: 0))
    }
    #expect(fixture.server.choices == ["17"])
    #expect(fixture.server.calls(of: "open") == 1)
  }

  /// For a server that ends a login at the first wrong number: after three entries that match no option, nothing is
  /// sent.
  @Test("What is no choice three times is over") func whatIsNoChoiceThreeTimesIsOver() async throws {
    let challenge = try #require(
      ChoiceChallenge(options: ["17", "42", "93"], counts: FailureCounts(max: 1, previous: 0), maxInvalidEntries: 3))
    fixture.server.set(challenge: .choice(challenge))
    try await fixture.withHandler {
      fixture.announce(fixture.request(1))
      for wrongEntry in 1...3 {
        await fixture.panel.until(challenges: wrongEntry)
        fixture.panel.perform(typed("71"))
      }
      await fixture.panel.until(showing: .idle(pending: 0))
    }
    #expect(fixture.panel.shown.filter { $0 == .noSuchChoice }.count == 3)
    #expect(fixture.server.delivered.isEmpty && fixture.server.calls(of: "seal") == 0)
    #expect(fixture.server.calls(of: "ended") == 1)
    let end = try #require(fixture.stateStore.audit.last { $0.kind == .settled })
    #expect(end.detail.contains("matched no number that the portal can show"))
  }

  @Test("Declining needs no choice", arguments: [deny, notMe])
  func decliningNeedsNoChoice(event: PanelEvent) async throws {
    try want(["M", "H"])
    try await fixture.withHandler {
      fixture.announce(fixture.request(1))
      await fixture.panel.until(challenges: 1)
      fixture.panel.perform(event)
      await fixture.panel.until(showing: .idle(pending: 0))
    }
    #expect(fixture.server.delivered.map { $0.decision == .accept } == [false])
    #expect(fixture.server.choices == [nil])
  }

  @Test("A wrong choice is asked for again") func aWrongChoiceIsAskedForAgain() async throws {
    try want(["M", "H"])
    fixture.server.fail("deliver", .choiceIncorrect(FailureCounts(max: 2, previous: 1)))
    try await fixture.withHandler {
      fixture.announce(fixture.request(1))
      await fixture.panel.until(challenges: 1)
      fixture.panel.perform(typed("1"))
      await fixture.panel.until(challenges: 2)
      fixture.panel.perform(typed("2"))
      await fixture.panel.until(showing: .idle(pending: 0))
    }
    #expect(fixture.panel.shown.contains(.pinWrong(remaining: 1)))
    #expect(fixture.server.choices == ["M", "H"])
    #expect(Set(fixture.server.delivered.map(\.idempotencyKey)).count == 2)
    #expect(fixture.stateStore.audit.filter { $0.kind == .choiceWrong }.count == 1)
    // A wrong choice does not count as a wrong PIN.
    #expect(!fixture.events.all.contains { if case .counted = $0 { true } else { false } })
  }

  @Test("The PIN is typed after the choice") func thePINIsTypedAfterTheChoice() async throws {
    try want(["17", "42"], pin: PINChallenge(length: 5, counts: FailureCounts(max: 3, previous: 0)))
    try await fixture.withHandler {
      fixture.announce(fixture.request(1))
      await fixture.panel.until(challenges: 1)
      fixture.panel.perform(typed("42"))
      await fixture.panel.until(challenges: 2)
      #expect(fixture.server.delivered.isEmpty)
      fixture.panel.perform(typed("13579"))
      await fixture.panel.until(showing: .idle(pending: 0))
    }
    #expect(fixture.panel.prompts == [.digits(count: 2), .digits(count: 5)])
    #expect(fixture.server.choices == ["42"] && fixture.server.pins.count == 1)
  }

  /// The PIN is verified by this token, before the answer is sent.
  @Test("A PIN that is wrong before the answer leaves is asked for again")
  func aPINThatIsWrongBeforeTheAnswerLeavesIsAskedForAgain() async throws {
    fixture.server.set(challenge: .pin(PINChallenge(length: 5, counts: FailureCounts(max: 3, previous: 0))))
    fixture.server.fail("seal", .pinIncorrect(FailureCounts(max: 3, previous: 1)))
    try await fixture.withHandler {
      fixture.announce(fixture.request(1))
      await fixture.panel.until(challenges: 1)
      fixture.panel.perform(typed("00000"))
      await fixture.panel.until(challenges: 2)
      #expect(fixture.server.delivered.isEmpty)
      fixture.panel.perform(typed("13579"))
      await fixture.panel.until(showing: .idle(pending: 0))
    }
    #expect(fixture.panel.shown.contains(.pinWrong(remaining: 2)))
    #expect(fixture.server.delivered.count == 1)
    #expect(fixture.stateStore.outcomes(of: HandlerFixture.transaction(1)) == ["approved, receipt receipt-1"])
  }

  @Test("A code for the portal is shown after the servers word") func aCodeForThePortalIsShownAfterTheServersWord()
    async throws
  {
    let code = try #require(PortalCode(digits: "07", message: "Enter the code"))
    fixture.server.set(code: code)
    try await fixture.withHandler {
      fixture.announce(fixture.request(1))
      await fixture.panel.until(challenges: 1)
      fixture.panel.perform(accept)
      await fixture.panel.until(showing: .idle(pending: 0))
    }
    #expect(fixture.panel.shown.suffix(3) == [.confirmed, .code([0, 7]), .idle(pending: 0)])
    #expect(fixture.events.all.contains(.code(AccountID("A"), HandlerFixture.transaction(1), code)))
    #expect(fixture.events.all.allSatisfy { !"\($0)".contains("07") })
  }

  @Test("An outcome that stays unknown is not called a refusal")
  func outcomeThatStaysUnknownIsNotCalledARefusal() async throws {
    fixture.server.fail("deliver", .outcomeUnknown("the answer may have counted"))
    try await fixture.withHandler {
      fixture.announce(fixture.request(1))
      await fixture.panel.until(challenges: 1)
      fixture.panel.perform(accept)
      await fixture.panel.until(showing: .idle(pending: 0))
    }
    #expect(fixture.panel.shown.contains(.outcomeUnknown))
    #expect(
      fixture.stateStore.outcomes(of: HandlerFixture.transaction(1)) == [
        "permanently unknown: the answer may have counted"
      ])
  }

  @Test("What cannot be chosen from is no choice", arguments: [[], ["M"], ["M", "M"], (1...11).map { "\($0)" }])
  func whatCannotBeChosenFromIsNoChoice(options: [String]) {
    #expect(ChoiceChallenge(options: options, counts: Self.counts) == nil)
  }

  @Test("What cannot be typed is no code", arguments: ["", "1a", "123456789", "١٢"])
  func whatCannotBeTypedIsNoCode(digits: String) { #expect(PortalCode(digits: digits, message: "") == nil) }
}
