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
