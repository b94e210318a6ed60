// SPDX-License-Identifier: Apache-2.0
import Foundation

/// A sample of repeated measurements.
struct Sample {
  private(set) var sorted: [Double]

  init(_ values: [Double]) { sorted = values.sorted() }

  var count: Int { sorted.count }
  var median: Double { quantile(0.5) }

  /// Nearest rank: always a measured value, without interpolation.
  func quantile(_ share: Double) -> Double {
    guard !sorted.isEmpty else { return .nan }
    return sorted[
      min(
        sorted.count - 1,
        Int((share * Double(sorted.count)).rounded(.up)) - 1 < 0
          ? 0 : Int((share * Double(sorted.count)).rounded(.up)) - 1)]
  }

  /// The median and the tenth and ninetieth percentile of seconds, in milliseconds.
  var inMilliseconds: String {
    "\((median * 1e3).text(1)) ms (\((quantile(0.1) * 1e3).text(1)) to \((quantile(0.9) * 1e3).text(1)), n = \(count))"
  }
}

extension Double {
  func text(_ decimals: Int) -> String { String(format: "%.\(decimals)f", self) }
}

extension Row {
  /// A row that compares the token's time with programs in a shell.
  /// - Parameters:
  ///   - programs: the programs in the shell.
  ///   - goal: what the goal compares the token's time with, in one word.
  init(
    _ what: String, _ values: [Double], besides scripts: [Double], of programs: String = "openssl and curl",
    goal: String = "both"
  ) {
    let sample = Sample(values)
    let ratio = sample.median / Sample(scripts).median
    self.init(
      what, "\(ratio.text(2)) × \(programs): \(sample.inMilliseconds)", goal: "≤ 1.5 × \(goal)", met: ratio <= 1.5)
  }

  /// What the token must do besides curl's exchange, and the ratio of the token's time to both.
  init(_ what: String, with parts: [Sample], _ exchange: Sample, _ token: Sample) {
    let each = parts.map { "\(($0.median * 1e3).text(2))" }.joined(separator: " + ")
    let sum = (parts + [exchange]).map(\.median).reduce(0, +)
    self.init(
      what,
      """
      \(each) ms: with them \((sum / exchange.median).text(2)) × curl; the token takes \((token.median / sum).text(2)) × \
      as long as all of it
      """)
  }

  /// The last of the unavoidable parts, and the ratio of the token's time to all of them.
  init(_ what: String, _ values: [Double], besidesParts parts: [Sample], _ last: Sample) {
    let ratio = Sample(values).median / (parts + [last]).map(\.median).reduce(0, +)
    self.init(what, "\(last.inMilliseconds): the token takes \(ratio.text(2)) × as long as these parts")
  }
}
