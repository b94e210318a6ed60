// SPDX-License-Identifier: Apache-2.0
import MobileAuth

/// A blinking pattern as a pure function of the time since its beginning: whether the LED is lit, and when that changes
/// next. The driver sleeps between changes, so an idle LED causes two wake-ups per flash.
package struct LEDPattern: Sendable, Equatable {
  /// The lengths of the steps in milliseconds, alternating lit and dark, beginning lit.
  let steps: [Int64]
  /// Whether the pattern repeats. Otherwise it is played once and the LED stays dark.
  let repeats: Bool

  static func repeating(_ steps: Int64...) -> LEDPattern { LEDPattern(steps: steps, repeats: true) }
  static func once(_ steps: Int64...) -> LEDPattern { once(steps) }
  static func once(_ steps: [Int64]) -> LEDPattern { LEDPattern(steps: steps, repeats: false) }
  /// `lead` (an even number of steps), then `count` blinks, once.
  static func counted(_ count: Int, after lead: [Int64]) -> LEDPattern {
    LEDPattern(steps: lead + [Int64](repeating: 300, count: 2 * count), repeats: false)
  }
  /// The pattern again and again, with `pause` ms dark after it.
  func repeated(pause: Int64) -> LEDPattern {
    LEDPattern(steps: steps.dropLast() + [(steps.last ?? 0) + pause], repeats: true)
  }
  /// Spells digits: dark for 1 s, then `digit` blinks for each digit (one long blink for zero) with a dark step after
  /// each. All digits are played `times` times, with `pause` ms after the last one.
  static func spelled(_ digits: [Int], times: Int, pause: Int64) -> LEDPattern {
    var steps: [Int64] = [0, 1_000]
    for digit in digits {
      steps += digit == 0 ? [1_200, 1_500] : [Int64](repeating: 300, count: 2 * digit - 1) + [1_500]
    }
    steps[steps.count - 1] = pause
    return once(steps + (1..<times).flatMap { _ in steps.dropFirst(2) })
  }
  /// Repetitions of this pattern for about 4 s, then 1 s dark, then `count` short blinks and a pause, repeating.
  func interrupted(by count: Int) -> LEDPattern {
    let round = steps.reduce(0, +)
    var interrupted = (0..<max(1, (4_000 + round / 2) / max(1, round))).flatMap { _ in steps }
    interrupted[interrupted.count - 1] += 1_000
    for _ in 0..<count { interrupted += [80, 220] }
    interrupted[interrupted.count - 1] += 700
    return LEDPattern(steps: interrupted, repeats: true)
  }

  static let solid = LEDPattern(steps: [], repeats: true)

  /// `count` short flashes, then dark up to `period`. Milliseconds.
  static func flashes(_ count: Int, lit: Int64, dark: Int64, period: Int64) -> LEDPattern {
    var steps = [Int64](repeating: 0, count: 0)
    for _ in 0..<count { steps += [lit, dark] }
    steps[steps.count - 1] = period - steps.dropLast().reduce(0, +)
    return LEDPattern(steps: steps, repeats: true)
  }

  /// The length of one round. Zero for a solid light.
  package var length: Duration { .milliseconds(steps.reduce(0, +)) }

  package func isLit(after elapsed: Duration) -> Bool {
    guard let (index, _) = position(after: elapsed) else { return steps.isEmpty }
    return index % 2 == 0
  }

  /// The time from the beginning of the pattern at which `isLit` changes next; nil if never.
  package func nextChange(after elapsed: Duration) -> Duration? {
    guard let (index, remaining) = position(after: elapsed) else { return nil }
    // The dark step at the end of a pattern that is played once continues into the darkness after it.
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
