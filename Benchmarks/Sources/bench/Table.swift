// SPDX-License-Identifier: Apache-2.0
/// One row of the result table.
struct Row {
  enum Verdict: String {
    case met, missed
    /// A number without a goal, for explanation.
    case none = ""

    /// In Markdown.
    var text: String { self == .missed ? "**missed**" : rawValue }
  }

  let what: String
  let measured: String
  let goal: String
  let verdict: Verdict

  init(_ what: String, _ measured: String) {
    (self.what, self.measured, goal, verdict) = (what, measured, "", .none)
  }

  init(_ what: String, _ measured: String, goal: String, met: Bool) {
    (self.what, self.measured, self.goal) = (what, measured, goal)
    verdict = met ? .met : .missed
  }
}

enum Table {
  /// Markdown, with aligned columns.
  static func text(_ rows: [Row]) -> String {
    let cells =
      [["What", "Measured", "Goal", ""]]
      + rows.map { [$0.what, $0.measured, $0.goal, $0.verdict.text] }
    let widths = (0..<4).map { column in cells.map { $0[column].count }.max() ?? 0 }
    func line(_ row: [String]) -> String {
      "| " + zip(row, widths).map { $0 + String(repeating: " ", count: $1 - $0.count) }.joined(separator: " | ") + " |"
    }
    let rule = "|" + widths.map { String(repeating: "-", count: $0 + 2) }.joined(separator: "|") + "|"
    return ([line(cells[0]), rule] + cells.dropFirst().map(line)).joined(separator: "\n")
  }
}
