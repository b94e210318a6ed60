// SPDX-License-Identifier: Apache-2.0
import Foundation

/// The document with the newest value of every row.
struct Report {
  let file: String

  private static let begin = "<!-- numbers: written by scripts/bench --write -->"
  private static let end = "<!-- end of numbers -->"
  private static let head = ["| What | Measured | Goal | | Date, commit |", "|---|---|---|---|---|"]
  /// Begins the name of a row that explains the one before it.
  private static let mark = "– "

  /// Replaces the rows that were measured, each with the rows that explain it, and keeps the others.
  func replace(with rows: [Row]) throws {
    let text = try String(contentsOfFile: file, encoding: .utf8)
    guard let begin = text.range(of: Self.begin), let end = text.range(of: Self.end), begin.upperBound < end.lowerBound
    else { throw BenchError("\(file) has no place for numbers") }
    let known = text[begin.upperBound..<end.lowerBound].split(separator: "\n").map(String.init)
    var groups = Self.groups(known.filter { $0.hasPrefix("| ") && !Self.head.contains($0) })
    for group in Self.groups(rows.map(Self.line)) {
      let index = groups.firstIndex { Self.name(of: $0[0]) == Self.name(of: group[0]) }
      if let index { groups[index] = group } else { groups.append(group) }
    }
    let body = (["", ""] + Self.head + groups.flatMap(\.self) + ["", Self.machine, "", ""]).joined(separator: "\n")
    try (text[..<begin.upperBound] + body + text[end.lowerBound...]).write(
      toFile: file, atomically: true, encoding: .utf8)
  }

  private static func groups(_ lines: [String]) -> [[String]] {
    lines.reduce(into: []) { groups, line in
      if name(of: line).hasPrefix(mark), !groups.isEmpty {
        groups[groups.count - 1].append(line)
      } else {
        groups.append([line])
      }
    }
  }

  private static func name(of line: String) -> String {
    line.split(separator: "|").first.map { $0.trimmingCharacters(in: .whitespaces) } ?? ""
  }

  private static func line(_ row: Row) -> String {
    let what = row.what.hasPrefix(" ") ? mark + row.what.drop { $0 == " " } : row.what
    let cells = [what, row.measured, row.goal, row.verdict.text, "\(date), \(environment("BENCH_COMMIT"))"]
    return "| " + cells.joined(separator: " | ") + " |"
  }

  private static var date: String { Date().formatted(.iso8601.year().month().day()) }

  private static var machine: String {
    let memory = Double(ProcessInfo.processInfo.physicalMemory) / 1_073_741_824
    return """
      The machine of the last run: \(processor), \(ProcessInfo.processInfo.activeProcessorCount) cores, \(memory.text(0)) GiB,
      Linux \(line("/proc/sys/kernel/osrelease")), \(system), \(environment("BENCH_SWIFT")), release build with \
      `--static-swift-stdlib`, stripped.
      """
  }

  private static var processor: String {
    let lines = ((try? String(contentsOfFile: "/proc/cpuinfo", encoding: .utf8)) ?? "").split(separator: "\n")
    // ARM boards have no model name, but a model.
    let name = lines.first { $0.hasPrefix("model name") } ?? lines.first { $0.hasPrefix("Model") }
    return name?.split(separator: ":").last.map { $0.trimmingCharacters(in: .whitespaces) } ?? "unknown processor"
  }

  private static var system: String {
    let lines = ((try? String(contentsOfFile: "/etc/os-release", encoding: .utf8)) ?? "").split(separator: "\n")
    let name = lines.first { $0.hasPrefix("PRETTY_NAME=") }?.dropFirst("PRETTY_NAME=".count)
    return name?.trimmingCharacters(in: ["\""]) ?? "unknown system"
  }

  private static func environment(_ name: String) -> String { ProcessInfo.processInfo.environment[name] ?? "unknown" }

  private static func line(_ file: String) -> String {
    ((try? String(contentsOfFile: file, encoding: .utf8)) ?? "unknown").trimmingCharacters(in: .whitespacesAndNewlines)
  }
}
