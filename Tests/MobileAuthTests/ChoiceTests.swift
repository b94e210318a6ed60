// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import Secrets
import Testing

@testable import MobileAuth

@Suite(.timeLimit(.minutes(5))) struct ChoiceTests {
  private let world = World()
  private static let counts = FailureCounts(max: 2, previous: 0)

  private func typed(_ digits: String) -> PanelEvent { .entered(PIN(digits: SecretBytes(copying: Array(digits.utf8)))) }

  private func want(_ options: [String], pin: PINChallenge? = nil) throws {
    let challenge = try #require(ChoiceChallenge(options: options, counts: Self.counts, pin: pin))
    world.server.set(challenge: .choice(challenge))
  }

  @Test(arguments: [
    (["17", "42", "93"], 2, "42", "42"), (["M", "H", "A"], 1, "2", "H"),
    (["dark blue", "Größe", "a|b"], 1, "3", "a|b"),
    (["07", "7 ", "8"], 1, "2", "7 "), ((1...10).map { "text \($0)" }, 1, "0", "text 10"),
  ])
  func numbersAreTypedAndAllElseIsChosenByPosition(options: [String], digits: Int, keys: String, chosen: String)
    async throws
  {
    try want(options)
    try await world.withHandler {
      world.announce(world.request(1))
      await world.panel.until(challenges: 1)
      world.panel.perform(typed(keys))
      await world.panel.until(showing: .idle(pending: 0))
    }
    #expect(world.panel.prompts == [.digits(count: digits)])
    #expect(world.panel.shown.contains(.numberWanted))
    #expect(world.server.choices == [chosen])
    #expect(world.custody.audit.contains { $0.kind == .decided && $0.detail == "accept by choice" })
  }

  /// Only an offered number approves: neither a press nor another number. A typing error costs no attempt.
  @Test func whatIsNoChoiceIsAskedForAgain() async throws {
    try want(["17", "42", "93"])
    try await world.withHandler {
      world.announce(world.request(1))
      await world.panel.until(challenges: 1)
      world.panel.perform(accept)
      world.panel.perform(typed("71"))
      await world.panel.until(challenges: 2)
      #expect(world.panel.shown.contains(.noSuchChoice))
      world.panel.perform(typed("17"))
      await world.panel.until(showing: .idle(pending: 0))
    }
    #expect(world.server.choices == ["17"])
    #expect(world.server.calls(of: "open") == 1)
  }

  /// For a server that ends a login at the first wrong number: after three entries that match no option, nothing is
  /// sent.
  @Test func whatIsNoChoiceThreeTimesIsOver() async throws {
    let challenge = try #require(
      ChoiceChallenge(options: ["17", "42", "93"], counts: FailureCounts(max: 1, previous: 0), slipsAllowed: 3))
    world.server.set(challenge: .choice(challenge))
    try await world.withHandler {
      world.announce(world.request(1))
      for slip in 1...3 {
        await world.panel.until(challenges: slip)
        world.panel.perform(typed("71"))
      }
      await world.panel.until(showing: .idle(pending: 0))
    }
    #expect(world.panel.shown.filter { $0 == .noSuchChoice }.count == 3)
    #expect(world.server.delivered.isEmpty && world.server.calls(of: "seal") == 0)
    #expect(world.server.calls(of: "ended") == 1)
    let end = try #require(world.custody.audit.last { $0.kind == .settled })
    #expect(end.detail.contains("matched no number that the portal can show"))
  }

  @Test(arguments: [deny, notMe])
  func decliningNeedsNoChoice(event: PanelEvent) async throws {
    try want(["M", "H"])
    try await world.withHandler {
      world.announce(world.request(1))
      await world.panel.until(challenges: 1)
      world.panel.perform(event)
      await world.panel.until(showing: .idle(pending: 0))
    }
    #expect(world.server.delivered.map { $0.decision == .accept } == [false])
    #expect(world.server.choices == [nil])
  }

  @Test func aWrongChoiceIsAskedForAgain() async throws {
    try want(["M", "H"])
    world.server.fail("deliver", .choiceIncorrect(FailureCounts(max: 2, previous: 1)))
    try await world.withHandler {
      world.announce(world.request(1))
      await world.panel.until(challenges: 1)
      world.panel.perform(typed("1"))
      await world.panel.until(challenges: 2)
      world.panel.perform(typed("2"))
      await world.panel.until(showing: .idle(pending: 0))
    }
    #expect(world.panel.shown.contains(.pinWrong(remaining: 1)))
    #expect(world.server.choices == ["M", "H"])
    #expect(Set(world.server.delivered.map(\.idempotencyKey)).count == 2)
    #expect(world.custody.audit.filter { $0.kind == .choiceWrong }.count == 1)
    // A wrong choice does not count as a wrong PIN.
    #expect(!world.recorder.events.contains { if case .counted = $0 { true } else { false } })
  }

  @Test func thePINIsTypedAfterTheChoice() async throws {
    try want(["17", "42"], pin: PINChallenge(length: 5, counts: FailureCounts(max: 3, previous: 0)))
    try await world.withHandler {
      world.announce(world.request(1))
      await world.panel.until(challenges: 1)
      world.panel.perform(typed("42"))
      await world.panel.until(challenges: 2)
      #expect(world.server.delivered.isEmpty)
      world.panel.perform(typed("13579"))
      await world.panel.until(showing: .idle(pending: 0))
    }
    #expect(world.panel.prompts == [.digits(count: 2), .digits(count: 5)])
    #expect(world.server.choices == ["42"] && world.server.pins.count == 1)
  }

  /// The PIN is verified by this token, before the answer is sent.
  @Test func aPINThatIsWrongBeforeTheAnswerLeavesIsAskedForAgain() async throws {
    world.server.set(challenge: .pin(PINChallenge(length: 5, counts: FailureCounts(max: 3, previous: 0))))
    world.server.fail("seal", .pinIncorrect(FailureCounts(max: 3, previous: 1)))
    try await world.withHandler {
      world.announce(world.request(1))
      await world.panel.until(challenges: 1)
      world.panel.perform(typed("00000"))
      await world.panel.until(challenges: 2)
      #expect(world.server.delivered.isEmpty)
      world.panel.perform(typed("13579"))
      await world.panel.until(showing: .idle(pending: 0))
    }
    #expect(world.panel.shown.contains(.pinWrong(remaining: 2)))
    #expect(world.server.delivered.count == 1)
    #expect(world.custody.outcomes(of: World.transaction(1)) == ["approved, receipt receipt-1"])
  }

  @Test func aCodeForThePortalIsShownAfterTheServersWord() async throws {
    let code = try #require(PortalCode(digits: "07", message: "Enter the code"))
    world.server.set(code: code)
    try await world.withHandler {
      world.announce(world.request(1))
      await world.panel.until(challenges: 1)
      world.panel.perform(accept)
      await world.panel.until(showing: .idle(pending: 0))
    }
    #expect(world.panel.shown.suffix(3) == [.confirmed, .code([0, 7]), .idle(pending: 0)])
    #expect(world.recorder.events.contains(.code(AccountID("A"), code)))
    #expect(world.recorder.events.allSatisfy { !"\($0)".contains("07") })
  }

  @Test func anOutcomeNobodyWillEverTellIsNotCalledARefusal() async throws {
    world.server.fail("deliver", .outcomeUnknown("the answer may have counted"))
    try await world.withHandler {
      world.announce(world.request(1))
      await world.panel.until(challenges: 1)
      world.panel.perform(accept)
      await world.panel.until(showing: .idle(pending: 0))
    }
    #expect(world.panel.shown.contains(.outcomeUnknown))
    #expect(world.custody.outcomes(of: World.transaction(1)) == ["permanently unknown: the answer may have counted"])
  }

  @Test(arguments: [[], ["M"], ["M", "M"], (1...11).map { "\($0)" }])
  func whatCannotBeChosenFromIsNoChoice(options: [String]) {
    #expect(ChoiceChallenge(options: options, counts: Self.counts) == nil)
  }

  @Test(arguments: ["", "1a", "123456789", "١٢"])
  func whatCannotBeTypedIsNoCode(digits: String) { #expect(PortalCode(digits: digits, message: "") == nil) }
}
