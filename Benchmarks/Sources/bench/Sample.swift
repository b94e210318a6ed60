import Foundation

/// What was measured several times.
struct Sample {
  private(set) var sorted: [Double]

  init(_ values: [Double]) { sorted = values.sorted() }

  var count: Int { sorted.count }
  var median: Double { quantile(0.5) }

  /// Nearest rank: a value that was measured, never one between two.
  func quantile(_ share: Double) -> Double {
    guard !sorted.isEmpty else { return .nan }
    return sorted[
      min(
        sorted.count - 1,
        Int((share * Double(sorted.count)).rounded(.up)) - 1 < 0
          ? 0 : Int((share * Double(sorted.count)).rounded(.up)) - 1)]
  }

  /// Median and the range the middle four fifths lie in, of seconds, in milliseconds.
  var inMilliseconds: String {
    "\((median * 1e3).text(1)) ms (\((quantile(0.1) * 1e3).text(1)) to \((quantile(0.9) * 1e3).text(1)), n = \(count))"
  }
}

extension Double {
  func text(_ decimals: Int) -> String { String(format: "%.\(decimals)f", self) }
}

extension Row {
  /// What the token takes, beside programs in a shell that do the same.
  /// - Parameters:
  ///   - programs: those in the shell.
  ///   - goal: what the token's time is held against, in a word.
  init(
    _ what: String, _ values: [Double], besides scripts: [Double], of programs: String = "openssl and curl",
    goal: String = "both"
  ) {
    let sample = Sample(values)
    let ratio = sample.median / Sample(scripts).median
    self.init(
      what, "\(ratio.text(2)) × \(programs): \(sample.inMilliseconds)", goal: "≤ 1.5 × \(goal)", met: ratio <= 1.5)
  }

  /// The last of the parts that cannot be left out, and what the token takes beside all of them.
  init(_ what: String, _ values: [Double], besidesParts parts: [Sample], _ last: Sample) {
    let ratio = Sample(values).median / (parts + [last]).map(\.median).reduce(0, +)
    self.init(what, "\(last.inMilliseconds): the token takes \(ratio.text(2)) × as long as these parts")
  }
}
