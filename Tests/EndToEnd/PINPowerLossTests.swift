// SPDX-License-Identifier: Apache-2.0
import ProgramHarness
import Testing

extension EndToEnd {
  /// `kill -9` of the token at random times, against a model of the count: no attempt is refunded, no PIN is lost, no
  /// request is answered without a PIN.
  @Suite struct PINPowerLosses {
    enum Trials: CaseIterable { case answers, changes, enrollments }

    private static let dice = Dice.fresh()

    /// The number of lanes, each with its own token server and token, and the number of kills in each.
    private static let plan: [Trials: (lanes: Int, cuts: Int)] = [
      .answers: (8, 12), .changes: (8, 6), .enrollments: (6, 3),
    ]
    private static let arguments = Trials.allCases.flatMap { kind in
      (0..<(plan[kind]?.lanes ?? 0)).map { (kind, $0) }
    }
    private static let ends = plan.mapValues { Lanes($0.lanes) }

    @Test("A killed token neither guesses nor forgets", arguments: arguments)
    func aKilledTokenNeitherGuessesNorForgets(kind: Trials, lane: Int) async throws {
      var dice = Dice(seed: Self.dice.seed &+ UInt64(lane))
      var model = PINModel(pin: "13589")
      let cuts = try #require(Self.plan[kind]).cuts
      let proxy = try DisconnectingProxy()
      defer { proxy.close() }
      try await withPINScene(settings: "max_pin_attempts = 5", behind: proxy) { fixture in
        for number in 1...cuts {
          do {
            switch kind {
            case .answers: try await PINAnswerTrial(fixture: fixture).run(&model, &dice)
            case .changes: try await PINChangeTrial(fixture: fixture).run(&model, &dice)
            case .enrollments: try await PINEnrollmentTrial(fixture: fixture, user: "user\(number)").run(&model, &dice)
            }
          } catch {
            Issue.record("seed \(Self.dice.seed), lane \(lane), cut \(number) of \(kind): \(error)")
            throw error
          }
        }
      }
      print("\(cuts) cuts of \(kind) with seed \(Self.dice.seed), lane \(lane): \(model.tally)")
      // If all kills had the same outcome, their times were wrong.
      if let all = Self.ends[kind]?.end(with: model.tally) { #expect(all.count > 1, "\(kind): \(all)") }
    }
  }
}

/// The expected state of one account, derived only from the typed PINs and the server's log.
struct PINModel: Sendable {
  var pin: String
  /// Wrong PIN attempts since the last correct PIN.
  var failures = 0
  /// The outcomes of the kills, with their counts.
  var tally: [String: Int] = [:]

  init(pin: String) { self.pin = pin }

  mutating func count(_ outcome: String) { tally[outcome, default: 0] += 1 }

  struct ViolationError: Error, CustomStringConvertible {
    let description: String
  }

  func require(_ holds: Bool, _ what: String) throws {
    if !holds { throw ViolationError(description: what) }
  }
}

extension Dice {
  /// Five digits that all policies here allow.
  mutating func pin() -> String {
    while true {
      let digits = (1...5).map { _ in Int.random(in: 0...9, using: &self) }
      if Set(zip(digits, digits.dropFirst()).map { $1 - $0 }).count > 1 { return digits.map(String.init).joined() }
    }
  }
}
