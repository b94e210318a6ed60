// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import ProgramHarness
import Testing

extension EndToEnd {
  /// `kill -9` at every transition of the loop: nothing is approved without a hold, answered twice, or lost.
  @Suite struct PowerLosses {
    private static let dice = Dice.fresh()
    private static let cutsPerLane = 14
    private static let lanes = Lanes(15)

    /// Fifteen independent pairs of token server and token; 210 kills in total.
    @Test("A killed token neither invents nor repeats nor forgets", arguments: 0..<15)
    func aKilledTokenNeitherInventsNorRepeatsNorForgets(lane: Int) async throws {
      var dice = Dice(seed: Self.dice.seed &+ UInt64(lane))
      let sink = try CallbackSink()
      defer { sink.close() }
      let proxy = try DisconnectingProxy()
      defer { proxy.close() }
      try await withScene(behind: proxy) { fixture in
        var expected: Set<String> = []
        for number in 1...Self.cutsPerLane {
          let trial = Trial(fixture: fixture, callback: sink.address, cut: .random(using: &dice))
          let isAnsweredAgain = Int.random(in: 0..<5, using: &dice) == 0
          do { if let approved = try await trial.run(isAnsweredAgain) { expected.insert(approved) } } catch {
            Issue.record("seed \(Self.dice.seed), lane \(lane), cut \(number), \(trial.cut): \(error)")
            throw error
          }
        }
        #expect(try await fixture.token.accounts() == [.init(account: fixture.account, stage: "active")])
        // The portal gets exactly one callback for each approval.
        _ = try await eventually("all callbacks") { sink.calls.count >= expected.count ? true : nil }
        #expect(sink.calls.compactMap { $0.members["transaction_id"] }.sorted() == expected.sorted())
        print("\(Self.cutsPerLane) cuts with seed \(Self.dice.seed), lane \(lane): \(expected.count) approved")
        let tally = ["approved": expected.count, "not approved": Self.cutsPerLane - expected.count]
        // If all kills had the same outcome, they came at the wrong times.
        if let all = Self.lanes.end(with: tally) { #expect(all.values.allSatisfy { $0 > 0 }, "\(all)") }
      }
    }
  }
}

/// One request, one kill, and the invariants after it. The scene verifies the audit chain at its end: a broken chain
/// stays broken.
private struct Trial {
  let fixture: EndToEndFixture
  let callback: String
  let cut: PowerLoss

  struct ViolationError: Error, CustomStringConvertible {
    let description: String
  }

  /// - Parameter isAnsweredAgain: whether a request that is still open is then approved; otherwise the portal cancels
  ///   it.
  /// - Returns: the transaction, if it was approved.
  func run(_ isAnsweredAgain: Bool) async throws -> String? {
    let token = fixture.token
    let person = SimulatedUser()
    let process = try token.running
    let asked = ContinuousClock.now
    let asking = Task { try await fixture.ask(callback: callback) }
    let holding = Task { await person.hold(try await asking.finished(within: .seconds(180)), on: token) }
    switch cut {
    case .after(let step, let delay):
      try await process.errors.line(with: "\(step) request \(try await asking.finished(within: .seconds(180)))")
      try await Task.sleep(for: delay)
    case .sinceAsked(let delay): try await Task.sleep(until: asked + delay)
    case .sincePressed(let delay):
      try await asking.finished(within: .seconds(180))
      try require(await person.pressed() != nil, "the button was not pressed")
      try await Task.sleep(for: delay)
    }
    process.send(9)
    let killed = ContinuousClock.now
    try await process.exit()
    let transaction = try await asking.finished(within: .seconds(180))
    try await holding.finished(within: .seconds(180))

    try await token.startConnected()
    try await fixture.allIsAnswered()
    let isApproved = try await fixture.portal.result(of: transaction).isAuthenticated
    if isApproved {
      try require(person.earliestAnswer.map { $0 <= killed } == true, "approved without a hold")
    } else {
      try await token.log.line(with: "opened request \(transaction)")
    }
    let wasAnsweredAgain = !isApproved && isAnsweredAgain
    if wasAnsweredAgain {
      try await token.answer(transaction, with: .hold)
      try await token.log.line(with: "settled request \(transaction)", "approved, receipt ")
    } else if !isApproved {
      try await fixture.portal.cancel(transaction)
      // A list that was requested before the cancellation may report the end first, without its reason.
      try await token.log.line(with: "settled request \(transaction)")
    }
    try await check(transaction, isApproved: isApproved || wasAnsweredAgain, wasAnsweredAgain: wasAnsweredAgain)
    return isApproved || wasAnsweredAgain ? transaction : nil
  }

  private func check(_ transaction: String, isApproved: Bool, wasAnsweredAgain: Bool) async throws {
    let audit = try await eventually("the end in the audit chain") {
      let audit = try await fixture.token.audit(of: transaction)
      return !isApproved || audit.ending?.hasPrefix("approved, receipt ") == true ? audit : nil
    }
    let decisions = audit.count { $0.kind == "decided" }
    let approvals = audit.count { $0.kind == "settled" && $0.detail.hasPrefix("approved, ") }
    try require(approvals == (isApproved ? 1 : 0), "\(approvals) approvals in \(audit)")
    try require(!isApproved || decisions > 0, "approved without a decision in \(audit)")
    // One decision for each time that the request was shown: before the kill, and after it.
    try require(decisions <= (wasAnsweredAgain ? 2 : 1), "\(decisions) decisions in \(audit)")
    let answers = fixture.server.logged("transaction \(transaction): authenticated")
    try require(answers == (isApproved ? 1 : 0), "the server took \(answers) answers")
    try require(try await fixture.portal.result(of: transaction).isAuthenticated == isApproved, "the portal's result")
    let status = try await fixture.token.status()
    try require(status.accounts == 1 && status.mustEnroll == 0, "the enrollment is gone")
  }

  private func require(_ holds: Bool, _ what: String) throws {
    if !holds { throw ViolationError(description: what) }
  }
}
