// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import Glibc

/// Measures whether the duration of operations on digits depends on the digits: the complement of the check in
/// docs/constant-time.md, which treats all instructions as equal. Requires an idle machine.
///
///     timing [<pairs>]
@main
enum Timing {
  /// One in a thousand, two-sided.
  private static let threshold = 3.29

  static func main() {
    let pairs = CommandLine.arguments.dropFirst().first.flatMap { Int($0) } ?? 4000
    guard pairs >= 100 else {
      print("usage: timing [<pairs>]: at least 100, by default 4000")
      exit(64)
    }
    let seed = UInt64.random(in: .min ... .max)
    var random = SeededGenerator(seed: seed)
    print("\(pairs) pairs, in random order, seed \(seed). Differences in ns for each time it is done.\n")
    print(
      "| what | classes | median time | median difference (99.9 % interval) | sign z | Wilcoxon z | visible from | |")
    print("|---|---|---|---|---|---|---|---|")
    let failures = Subject.all.count { !isAsWanted($0, pairs, &random) }
    exit(failures == 0 ? 0 : 1)
  }

  private static func isAsWanted(_ subject: Subject, _ pairs: Int, _ random: inout SeededGenerator) -> Bool {
    let measured = measure(subject, pairs, &random)
    let differences = PairedDifferences(measured.map { $0.second - $0.first })
    let interval = differences.medianInterval(confidence: 0.999, draws: 2000, using: &random)
    let (sign, wilcoxon) = (differences.signScore, differences.wilcoxonScore)
    let isSeen = abs(sign) > threshold || abs(wilcoxon) > threshold
    let time = measured.map(\.first).sorted()[pairs / 2]
    let verdict = subject.isControl ? (isSeen ? "seen, as it must be" : "NOT SEEN") : (isSeen ? "SEEN" : "none seen")
    print(
      """
      | \(subject.name)\(subject.isControl ? " (control)" : "") | \(subject.classes.0); \(subject.classes.1) \
      | \(text(time)) | \(text(differences.median)) (\(text(interval.lowerBound)) to \(text(interval.upperBound))) \
      | \(text(sign)) | \(text(wilcoxon)) | \(text(differences.smallestVisible(threshold: threshold))) | \(verdict) |
      """)
    return isSeen == subject.isControl
  }

  private static func text(_ number: Double) -> String {
    let thousandths = Int((abs(number) * 1000).rounded())
    let sign = number < 0 && thousandths > 0 ? "-" : ""
    return "\(sign)\(thousandths / 1000)." + String("00\(thousandths % 1000)".suffix(3))
  }
}
