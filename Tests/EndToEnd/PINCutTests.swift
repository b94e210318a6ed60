import ProgramHarness
import Testing

extension EndToEnd {
  /// `kill -9` of the token at random moments, against a model of one number: no typed PIN is given back, no PIN is
  /// lost, nothing is answered without one.
  @Suite struct PINCuts {
    enum Lane: CaseIterable { case answers, changes, enrolments }

    /// Side by side, because most of the time of each goes by in front of an LED.
    private static let lanes: [(Lane, cuts: Int)] =
      [(Lane, cuts: Int)](repeating: (.answers, 23), count: 4)
      + [(Lane, cuts: Int)](repeating: (.changes, 11), count: 4)
      + [(Lane, cuts: Int)](repeating: (.enrolments, 9), count: 2)

    @Test func aKilledTokenNeitherGuessesNorForgets() async throws {
      let dice = Dice.fresh()
      let tallies = try await withThrowingTaskGroup(of: (Lane, [String: Int]).self) { group in
        for (number, (lane, cuts)) in Self.lanes.enumerated() {
          group.addTask {
            let context = "seed \(dice.seed), lane \(number)"
            return (lane, try await Self.play(lane, cuts, Dice(seed: dice.seed &+ UInt64(number)), context))
          }
        }
        var tallies: [Lane: [String: Int]] = [:]
        for try await (lane, tally) in group { tallies[lane, default: [:]].merge(tally, uniquingKeysWith: +) }
        return tallies
      }
      for (lane, tally) in tallies {
        print("\(tally.values.reduce(0, +)) cuts of \(lane) with seed \(dice.seed): \(tally)")
        // Cuts that all come to the same thing were in the wrong places.
        #expect(tally.count > 1, "\(lane)")
      }
    }

    /// - Returns: what the cuts led to, and how often.
    private static func play(
      _ lane: Lane, _ cuts: Int, _ dice: Dice, _ context: String
    ) async throws -> [String: Int] {
      var dice = dice
      var model = PINModel(pin: "13589")
      try await withPINScene(settings: "max_pin_attempts = 5") { scene in
        for number in 1...cuts {
          do {
            switch lane {
            case .answers: try await PINAnswerTrial(scene: scene).run(&model, &dice)
            case .changes: try await PINChangeTrial(scene: scene).run(&model, &dice)
            case .enrolments: try await PINEnrolmentTrial(scene: scene, user: "user\(number)").run(&model, &dice)
            }
          } catch {
            Issue.record("\(context), cut \(number) of \(lane): \(error)")
            throw error
          }
        }
      }
      return model.tally
    }
  }
}

/// What must be true of one account, from nothing but what was typed and what the server has said.
struct PINModel: Sendable {
  var pin: String
  /// Wrong PINs since the last right one.
  var failures = 0
  /// What the cuts led to, and how often.
  var tally: [String: Int] = [:]

  init(pin: String) { self.pin = pin }

  mutating func count(_ outcome: String) { tally[outcome, default: 0] += 1 }

  struct Violation: Error, CustomStringConvertible {
    let description: String
  }

  func require(_ holds: Bool, _ what: String) throws {
    if !holds { throw Violation(description: what) }
  }
}

extension Dice {
  /// Five digits that any policy here allows.
  mutating func pin() -> String {
    while true {
      let digits = (1...5).map { _ in Int.random(in: 0...9, using: &self) }
      if Set(zip(digits, digits.dropFirst()).map { $1 - $0 }).count > 1 { return digits.map(String.init).joined() }
    }
  }
}
