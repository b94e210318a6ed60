// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import Foundation

/// Reproducible random numbers: `END_TO_END_SEED=N` repeats a run as far as the machine's timing allows.
struct Dice: RandomNumberGenerator, Sendable {
  let seed: UInt64
  private var numbers: SeededGenerator

  init(seed: UInt64) {
    self.seed = seed
    numbers = SeededGenerator(seed: seed)
  }

  static func fresh() -> Dice {
    let wanted = ProcessInfo.processInfo.environment["END_TO_END_SEED"].flatMap { UInt64($0) }
    return Dice(seed: wanted ?? .random(in: 0..<1_000_000_000))
  }

  mutating func next() -> UInt64 { numbers.next() }

  mutating func milliseconds(_ range: ClosedRange<Int>) -> Duration {
    .milliseconds(Int.random(in: range, using: &self))
  }
}
