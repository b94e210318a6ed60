// SPDX-License-Identifier: Apache-2.0
import Glibc

/// Differences between two classes that are measured in pairs, so that disturbances of the machine affect both. Uses
/// ranks and signs, not means, so that a single interrupt has little effect.
struct PairedDifferences {
  private let values: [Double]

  init(_ values: [Double]) { self.values = values }

  var count: Int { values.count }
  var median: Double { Self.median(values) }

  /// Standard deviations by which the number of positive differences is off half of them.
  var signScore: Double {
    let positive = Double(values.count { $0 > 0 })
    let decided = positive + Double(values.count { $0 < 0 })
    return decided == 0 ? 0 : (2 * positive - decided) / decided.squareRoot()
  }

  /// Wilcoxon's signed-rank statistic in standard deviations; ties share their ranks, zeros have none.
  var wilcoxonScore: Double { wilcoxonScore(shiftedBy: 0) }

  private func wilcoxonScore(shiftedBy shift: Double) -> Double {
    let sorted = values.map { $0 + shift }.filter { $0 != 0 }.sorted { abs($0) < abs($1) }
    var (signed, squares, first) = (0.0, 0.0, 0)
    while first < sorted.count {
      let end = sorted[first...].firstIndex { abs($0) > abs(sorted[first]) } ?? sorted.count
      let rank = Double(first + 1 + end) / 2
      for value in sorted[first..<end] { signed += value > 0 ? rank : -rank }
      squares += rank * rank * Double(end - first)
      first = end
    }
    return squares == 0 ? 0 : signed / squares.squareRoot()
  }

  /// The confidence interval of the median, by bootstrap.
  func medianInterval(confidence: Double, draws: Int, using random: inout some RandomNumberGenerator)
    -> ClosedRange<Double>
  {
    let medians = (0..<draws).map { _ in
      Self.median((0..<count).map { _ in values[Int.random(in: 0..<count, using: &random)] })
    }.sorted()
    let tail = Int((1 - confidence) / 2 * Double(draws))
    return medians[tail]...medians[draws - 1 - tail]
  }

  /// The smallest difference that would be detected nine times out of ten with this noise: the shift at which these
  /// differences, centered, are 1.28 standard deviations beyond the threshold.
  func smallestVisible(threshold: Double) -> Double {
    let centred = PairedDifferences(values.map { $0 - median })
    var (below, above) = (0.0, values.map(abs).max() ?? 0)
    for _ in 0..<40 {
      let middle = (below + above) / 2
      if centred.wilcoxonScore(shiftedBy: middle) < threshold + 1.28 { below = middle } else { above = middle }
    }
    return above
  }

  private static func median(_ values: [Double]) -> Double {
    let sorted = values.sorted()
    guard !sorted.isEmpty else { return .nan }
    let middle = sorted.count / 2
    return sorted.count % 2 == 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2
  }
}
