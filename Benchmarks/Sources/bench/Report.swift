// SPDX-License-Identifier: Apache-2.0
import Foundation

/// The document with the latest numbers.
struct Report {
  let file: String

  private static let begin = "<!-- numbers: written by scripts/bench --write -->"
  private static let end = "<!-- end of numbers -->"

  func replace(with table: String) throws {
    let text = try String(contentsOfFile: file, encoding: .utf8)
    guard let begin = text.range(of: Self.begin), let end = text.range(of: Self.end), begin.upperBound < end.lowerBound
    else { throw BenchError("\(file) has no place for numbers") }
    let body = "\n\n\(table)\n\n\(Self.machine)\n\n"
    try (text[..<begin.upperBound] + body + text[end.lowerBound...]).write(
      toFile: file, atomically: true, encoding: .utf8)
  }

  private static var machine: String {
    let date = Date().formatted(.iso8601.year().month().day())
    let memory = Double(ProcessInfo.processInfo.physicalMemory) / 1_073_741_824
    return """
      Measured on \(date): \(processor), \(ProcessInfo.processInfo.activeProcessorCount) cores, \(memory.text(0)) GiB, \
      Linux \(line("/proc/sys/kernel/osrelease")), \(system), \(environment("BENCH_SWIFT")), release build with \
      `--static-swift-stdlib`, stripped, commit \(environment("BENCH_COMMIT")).
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
