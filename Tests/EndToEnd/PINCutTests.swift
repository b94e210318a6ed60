import ProgramHarness
import Testing

extension EndToEnd {
  /// `kill -9` of the token at random times, against a model of the count: no attempt is refunded, no PIN is lost, no
  /// request is answered without a PIN.
  @Suite struct PINCuts {
    enum Trials: CaseIterable { case answers, changes, enrolments }

    private static let dice = Dice.fresh()

    /// Each lane has its own token server and token.
    private static let lanes: [(Trials, Int)] =
      (0..<4).map { (.answers, $0) } + (0..<4).map { (.changes, $0) } + (0..<2).map { (.enrolments, $0) }

    @Test(arguments: lanes)
    func aKilledTokenNeitherGuessesNorForgets(kind: Trials, lane: Int) async throws {
      var dice = Dice(seed: Self.dice.seed &+ UInt64(lane))
      var model = PINModel(pin: "13589")
      let cuts =
        switch kind {
        case .answers: 23
        case .changes: 11
        case .enrolments: 9
        }
      try await withPINScene(settings: "max_pin_attempts = 5") { scene in
        for number in 1...cuts {
          do {
            switch kind {
            case .answers: try await PINAnswerTrial(scene: scene).run(&model, &dice)
            case .changes: try await PINChangeTrial(scene: scene).run(&model, &dice)
            case .enrolments: try await PINEnrolmentTrial(scene: scene, user: "user\(number)").run(&model, &dice)
            }
          } catch {
            Issue.record("seed \(Self.dice.seed), lane \(lane), cut \(number) of \(kind): \(error)")
            throw error
          }
        }
      }
      print("\(cuts) cuts of \(kind) with seed \(Self.dice.seed), lane \(lane): \(model.tally)")
      // If all kills had the same outcome, their times were wrong.
      #expect(model.tally.count > 1)
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

  struct Violation: Error, CustomStringConvertible {
    let description: String
  }

  func require(_ holds: Bool, _ what: String) throws {
    if !holds { throw Violation(description: what) }
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
