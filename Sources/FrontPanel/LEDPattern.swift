import MobileAuth

/// A blinking pattern as a pure function of the time since it began: what is lit, and when that changes next. The
/// driver sleeps in between, so an idle LED costs two wake-ups a blip.
public struct LEDPattern: Sendable, Equatable {
  /// Alternating lit and dark, beginning lit. Milliseconds.
  let steps: [Int64]
  /// Played once and then dark, or over and over.
  let repeats: Bool

  static func repeating(_ steps: Int64...) -> LEDPattern { LEDPattern(steps: steps, repeats: true) }
  static func once(_ steps: Int64...) -> LEDPattern { once(steps) }
  static func once(_ steps: [Int64]) -> LEDPattern { LEDPattern(steps: steps, repeats: false) }
  /// `lead` (an even number of steps), then `count` blinks, once.
  static func counted(_ count: Int, after lead: [Int64]) -> LEDPattern {
    LEDPattern(steps: lead + [Int64](repeating: 300, count: 2 * count), repeats: false)
  }
  /// Digit after digit, all of it so many times: so many blinks, a zero as one long, a pause after each, another after
  /// the last.
  static func spelled(_ digits: [Int], times: Int, pause: Int64) -> LEDPattern {
    var steps: [Int64] = [0, 1_000]
    for digit in digits {
      steps += digit == 0 ? [1_200, 1_500] : [Int64](repeating: 300, count: 2 * digit - 1) + [1_500]
    }
    steps[steps.count - 1] = pause
    return once(steps + (1..<times).flatMap { _ in steps.dropFirst(2) })
  }
  /// Whole rounds of this pattern for about 4 s, then dark for 1 s, then `count` short blinks and a pause, over and over.
  func interrupted(by count: Int) -> LEDPattern {
    let round = steps.reduce(0, +)
    var interrupted = (0..<max(1, (4_000 + round / 2) / max(1, round))).flatMap { _ in steps }
    interrupted[interrupted.count - 1] += 1_000
    for _ in 0..<count { interrupted += [80, 220] }
    interrupted[interrupted.count - 1] += 700
    return LEDPattern(steps: interrupted, repeats: true)
  }

  static let solid = LEDPattern(steps: [], repeats: true)

  /// `count` short flashes, then dark up to `period`.
  static func flashes(_ count: Int, lit: Int64, dark: Int64, period: Int64) -> LEDPattern {
    var steps = [Int64](repeating: 0, count: 0)
    for _ in 0..<count { steps += [lit, dark] }
    steps[steps.count - 1] = period - steps.dropLast().reduce(0, +)
    return LEDPattern(steps: steps, repeats: true)
  }

  /// One round. Zero for a solid light.
  public var length: Duration { .milliseconds(steps.reduce(0, +)) }

  public func isLit(after elapsed: Duration) -> Bool {
    guard let (index, _) = position(after: elapsed) else { return steps.isEmpty }
    return index % 2 == 0
  }

  /// When, counted from the pattern's beginning, `isLit` changes next; nil if never.
  public func nextChange(after elapsed: Duration) -> Duration? {
    guard let (index, remaining) = position(after: elapsed) else { return nil }
    // The pause at the end of a pattern that is played once goes over into the dark after it.
    if !repeats, index == steps.count - 1, index % 2 == 1 { return nil }
    return elapsed + .milliseconds(remaining)
  }

  private func position(after elapsed: Duration) -> (index: Int, remaining: Int64)? {
    let total = steps.reduce(0, +)
    guard total > 0, repeats || elapsed < length else { return nil }
    var rest = elapsed.milliseconds % total
    for (index, step) in steps.enumerated() {
      if rest < step { return (index, step - rest) }
      rest -= step
    }
    return nil
  }
}
