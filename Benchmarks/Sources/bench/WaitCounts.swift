// SPDX-License-Identifier: Apache-2.0

/// The waits for storage of some approvals, by the part of an approval: counts, which do not depend on what else the
/// machine does.
struct WaitCounts {
  /// Seconds after which the end of a request is written: while the LED shows the outcome.
  static let settling = 0.3

  private var (toLED, toGreen, all): ([Double], [Double], [Double]) = ([], [], [])

  /// - Parameter moments: before the portal asks, when the LED shows the request, before the user's last input, when
  ///   the LED shows the confirmation, and at the end.
  mutating func add(_ moments: [SlowStorage.Waits]) {
    // One that has begun before the LED lit may have delayed it; one that ends after green has not.
    toLED.append(Double(moments[1].begun - moments[0].ended))
    toGreen.append(Double(moments[3].ended - moments[2].ended))
    all.append(Double(moments[4].ended - moments[0].ended))
  }

  /// - Parameters:
  ///   - input: names the part from the user's last input to green.
  ///   - goals: for that part, and for the whole.
  func rows(_ what: String, _ input: String, goals: (toGreen: Double, all: Double)) -> [Row] {
    [
      row("\(what): waits for storage, hint to LED", toLED, goal: 0), row("  \(input)", toGreen, goal: goals.toGreen),
      row("  in all", all, goal: goals.all),
    ]
  }

  private func row(_ what: String, _ values: [Double], goal: Double) -> Row {
    let sample = Sample(values)
    return Row(
      what, "\(Int(sample.median)) (at most \(Int(sample.quantile(1))), n = \(sample.count))",
      goal: (goal == 0 ? "" : "≤ ") + "\(Int(goal))", met: sample.median <= goal)
  }
}
