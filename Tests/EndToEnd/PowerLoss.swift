// SPDX-License-Identifier: Apache-2.0
import ProgramHarness

/// The time at which a running token is killed.
enum PowerLoss: Sendable, CustomStringConvertible {
  /// After it logged that the request reached this step, plus a delay.
  case after(String, Duration)
  /// At this time after the portal's request, at any step.
  case sinceAsked(Duration)
  /// At this time after the first press began.
  case sincePressed(Duration)

  /// The transitions of the handling loop: → announced → opened → decided → settled → idle.
  private static let steps = ["announced", "opened", "decided", "settled"]

  static func random(using dice: inout Dice) -> PowerLoss {
    switch Int.random(in: 0..<8, using: &dice) {
    case 0...4: .after(steps.randomElement(using: &dice) ?? "opened", dice.milliseconds(0...15))
    case 5: .sinceAsked(dice.milliseconds(0...1500))
    default: .sincePressed(dice.milliseconds(0...700))
    }
  }

  var description: String {
    switch self {
    case .after(let step, let delay): "\(delay) after \(step)"
    case .sinceAsked(let delay): "\(delay) after the portal asked"
    case .sincePressed(let delay): "\(delay) after the press began"
    }
  }
}

/// A simulated user who holds the button whenever a request is shown, until the token is killed.
struct SimulatedUser: Sendable {
  /// The board's `accept_hold_ms`: an approval comes at least this long after its press began.
  static let acceptHold = Duration.milliseconds(500)

  private let firstPress = Observed(ContinuousClock.Instant?.none)

  /// A time not after the first press.
  func pressed() async -> ContinuousClock.Instant? {
    await firstPress.first(within: patience) { $0 }
  }

  /// The earliest time of an answer; nil if the button was not pressed.
  var earliestAnswer: ContinuousClock.Instant? { firstPress.value.map { $0 + Self.acceptHold } }

  func hold(_ transaction: String, on token: TestToken) async {
    guard let process = try? token.running,
      (try? await process.errors.line(with: "opened request \(transaction)")) != nil
    else { return }
    let deadline = ContinuousClock.now + patience
    while process.isRunning, process.errors.count(of: "decided request \(transaction)") == 0, .now < deadline {
      // Longer than the guard time, so that the press is accepted.
      try? await Task.sleep(for: .milliseconds(380))
      firstPress.change { $0 = $0 ?? .now }
      try? await token.hold(seconds: 0.55)
    }
  }
}
