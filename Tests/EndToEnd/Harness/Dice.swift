import Foundation

/// Random numbers that can be thrown again: `END_TO_END_SEED=N` repeats a run as far as the machine's timing allows.
struct Dice: RandomNumberGenerator, Sendable {
  let seed: UInt64
  private var state: UInt64

  init(seed: UInt64) {
    self.seed = seed
    state = seed
  }

  static func fresh() -> Dice {
    let wanted = ProcessInfo.processInfo.environment["END_TO_END_SEED"].flatMap { UInt64($0) }
    return Dice(seed: wanted ?? .random(in: 0..<1_000_000_000))
  }

  /// SplitMix64 (Steele, Lea, Flood 2014).
  mutating func next() -> UInt64 {
    state &+= 0x9E37_79B9_7F4A_7C15
    var mixed = state
    mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
    mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
    return mixed ^ (mixed >> 31)
  }

  mutating func milliseconds(_ range: ClosedRange<Int>) -> Duration {
    .milliseconds(Int.random(in: range, using: &self))
  }
}
