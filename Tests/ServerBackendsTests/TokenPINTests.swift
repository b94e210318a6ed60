// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import Cryptography
import MobileAuth
import PINProtection
import Secrets
import Testing

@testable import ServerBackends

@Suite("A PIN that this token verifies", .timeLimit(.minutes(1))) struct TokenPINTests {
  private let fixture: OperationsFixture
  private let ann = AccountID("ann")

  init() throws {
    fixture = try OperationsFixture()
    try fixture.account("ann") { $0.pin = PINMetadata(.token, length: 5) }
    try fixture.store.setPIN(
      of: ann, to: pin("13579"), keys: .init(copying: []), limit: 3, parameters: .standard, in: fixture.environment)
  }

  private func change() async throws {
    try await fixture.pins.change(of: ann, length: 5, on: fixture.panel) { _ in }
  }

  private var steps: [AuthenticationStep] {
    fixture.events.all.compactMap { if case .step(let step) = $0 { step } else { nil } }
  }

  private func challenge(
    _ counts: FailureCounts, after failure: AuthenticationStep.Failure? = nil
  ) -> AuthenticationStep {
    AuthenticationStep(
      .challenged(.pinChange, ChallengeSummary(.pin, counts: counts), after: failure), of: ann, authenticator: "pin")
  }

  @Test("It is changed after the present one was typed") func changed() async throws {
    let task = Task { try await change() }
    await fixture.enter("13579", "24680", "24680")
    try await task.finished()
    #expect(fixture.store.pin(of: ann) == pin("24680"))
    #expect(fixture.users.calls == ["ann: right"])
    #expect(
      fixture.panel.shown == [
        .pinWanted, .talkingToServer, .newPINWanted(again: false), .newPINWanted(again: true), .talkingToServer,
        .confirmed,
      ])
  }

  @Test("A wrong one is counted, and asked for again") func wrong() async throws {
    let task = Task { try await change() }
    await fixture.enter("11111", "13579", "24680", "24680")
    try await task.finished()
    #expect(fixture.users.calls == ["ann: 1 of 3", "ann: right"])
    #expect(fixture.panel.shown.contains(.pinWrong(remaining: 2)))
    let counts = FailureCounts(max: 3, previous: 1)
    #expect(
      steps == [
        challenge(FailureCounts(max: 3, previous: 0)), challenge(counts, after: .init(.pinIncorrect(counts))),
      ])
  }

  @Test("The last wrong one removes the account, and changes nothing else") func lastAttempt() async throws {
    let task = Task { try await change() }
    await fixture.enter("11111", "11111", "11111")
    await #expect(throws: TokenServerError.pinsUsedUp) { try await task.finished() }
    #expect(try fixture.store.accounts().isEmpty)
    #expect(fixture.users.calls == ["ann: 1 of 3", "ann: 2 of 3", "ann: lost", "reload"])
    #expect(steps.last == AuthenticationStep(.mustEnroll(.init(.pinsUsedUp)), of: ann))
    #expect(fixture.panel.shown.last == .mustEnroll)
  }

  /// No decision follows that clears the count of the attempt.
  @Test("The verdict about a right one is durable, and one of a wrong one needs nothing") func durable() async throws {
    let unlocked = Task { [fixture, ann] in
      _ = try await fixture.pins.unlock(ann, for: .oneTimePassword, length: 5, on: fixture.panel, { _ in })
    }
    await fixture.enter("11111")
    await fixture.panel.until(challenges: 2)
    #expect(fixture.store.flushes == 0)
    fixture.panel.perform(.typed("13579"))
    try await unlocked.finished()
    #expect(fixture.store.flushes == 1)
  }

  @Test("A wait is over before the PIN is verified") func wait() async throws {
    fixture.store.wait(.seconds(30))
    let unlocked = Task { [fixture, ann] in
      try await fixture.pins.unlock(ann, for: .oneTimePassword, length: 5, on: fixture.panel, { _ in }).pin
    }
    await fixture.enter("13579")
    await fixture.panel.until(showing: .talkingToServer)
    await fixture.clock.untilAsleep()
    #expect(fixture.users.calls == [])
    fixture.clock.advance(by: .seconds(30))
    #expect(try await unlocked.finished() == pin("13579"))
  }

  @Test(
    "A right one makes the fingerprints usable that stand in for the account, also if the PIN stays",
    arguments: [AuthenticationStep.Purpose.pinChange, .oneTimePassword])
  func makesFingersUsable(purpose: AuthenticationStep.Purpose) async throws {
    let account = try fixture.store.account(ann)
    try fixture.store.put(
      {
        var changed = account
        changed.standIns = [
          StandIn("finger", .finger, registration: [7]), StandIn("badge", .badge(key: []), registration: [8]),
        ]
        return changed
      }(), nil)
    let context = fixture.context
    let pins = AccountPINs(context, fixture.users)
    func isUsable(_ authenticator: String) -> Bool {
      let name = UnlockedTokens.Name(server: account.server, profile: account.profile, authenticator: authenticator)
      return context.unlockedTokens.token(name, at: fixture.clock.now) != nil
    }
    let unlocked = Task { [fixture, ann] in
      _ = try await pins.unlock(ann, for: purpose, length: 5, on: fixture.panel, { _ in })
    }
    await fixture.enter("11111")
    await fixture.panel.until(challenges: 2)
    #expect(!isUsable("finger"))
    fixture.panel.perform(.typed("13579"))
    try await unlocked.finished()
    #expect(isUsable("finger") && !isUsable("badge"))
  }

  @Test("The first one is stored with the operator's limit") func first() async throws {
    try fixture.account("bob")
    try await fixture.pins.chooseFirst(of: AccountID("bob"), { _ in }) { policy in
      #expect(policy.length == 6)
      return pin("135790")
    }
    #expect(try fixture.store.failureCounts(of: AccountID("bob"), in: fixture.environment)?.max == 5)
    #expect(fixture.users.calls == ["reload"])
  }

  @Test("Without a keypad none is chosen") func noKeypad() async throws {
    var context = fixture.context
    context.board = BoardCapabilities(hasKeypad: false, hasColorLED: true)
    let pins = AccountPINs(context, fixture.users)
    await #expect(throws: AccountError.noKeypad(ann)) {
      try await pins.chooseFirst(of: ann, { _ in }) { _ in pin("135790") }
    }
  }
}
