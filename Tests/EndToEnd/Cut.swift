import ProgramHarness

/// When a running token is killed.
enum Cut: Sendable, CustomStringConvertible {
  /// Right after it logged that the request has come this far, and a little later.
  case after(String, Duration)
  /// This long after the portal asked, wherever it is then.
  case sinceAsked(Duration)
  /// This long after the first press began.
  case sincePressed(Duration)

  /// The arrows of the handling loop: → announced → opened → decided → settled → idle.
  private static let steps = ["announced", "opened", "decided", "settled"]

  static func random(using dice: inout Dice) -> Cut {
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

/// Somebody who holds the button whenever the request is put to them, until the token is dead.
struct Person: Sendable {
  /// The board's `accept_hold_ms`: no approval is older than a press by less than this.
  static let acceptHold = Duration.milliseconds(500)

  private let firstPress = Observed(ContinuousClock.Instant?.none)

  /// A moment that is not after the first press.
  func pressed() async -> ContinuousClock.Instant? {
    await firstPress.first(within: patience) { $0 }
  }

  /// Before this no answer can have been given; nil if nobody has pressed.
  var earliestAnswer: ContinuousClock.Instant? { firstPress.value.map { $0 + Self.acceptHold } }

  func hold(_ transaction: String, on token: TestToken) async {
    guard let process = try? token.running,
      (try? await process.errors.line(with: "opened request \(transaction)")) != nil
    else { return }
    while process.isRunning, process.errors.count(of: "decided request \(transaction)") == 0 {
      // Longer than the guard time. It is what the token does with the press that counts.
      try? await Task.sleep(for: .milliseconds(380))
      firstPress.change { $0 = $0 ?? .now }
      try? await token.hold(seconds: 0.55)
    }
  }
}
