// SPDX-License-Identifier: Apache-2.0
import Foundation

/// What the processor does for a saturated token server with SQLite, by perf(1): shares by library, and for the code of
/// the program by module. The programs must have their symbols.
enum ProfileRows {
  private static let seconds = 10
  /// In percent; smaller shares are summed up.
  private static let least = 0.5

  static func measure(on stage: Stage) throws -> [Row] {
    let server = try TokenServer(on: stage, named: "profiled-server")
    defer { server.end() }
    let data = stage.directory + "/profile.data"
    let load = try TransactionRows.saturated(
      server,
      observedBy: {
        try Child(
          "/usr/bin/perf",
          [
            "record", "--quiet", "--freq", "999", "--pid", "\(server.readings.processID)", "--output", data, "--",
            "sleep", "\(seconds)",
          ], log: stage.directory + "/perf.log")
      })
    let report = try Child.run(
      "/usr/bin/perf",
      [
        "report", "--input", data, "--stdio", "--no-children", "--no-demangle", "--fields", "sample,dso,symbol",
        "--field-separator", ";", "--quiet",
      ], log: stage.directory + "/perf.log")
    let symbols = String(decoding: report, as: UTF8.self).split(separator: "\n").compactMap(Symbol.init)
    guard !symbols.isEmpty else {
      let reason = try? String(contentsOfFile: stage.directory + "/perf.log", encoding: .utf8)
      throw BenchError("perf has no samples: \(reason ?? "")")
    }
    return [
      Row("server, profile, \(TransactionRows.abreast) transactions always under way", text(symbols, by: \.library)),
      Row("  the program by module", text(symbols.filter { $0.library == "token-server" }, by: \.module)),
      Row(load.each.what, "with perf beside it: \(load.each.measured)"),
    ]
  }

  private struct Symbol {
    let samples: Int
    let library: String
    let module: String

    /// - Parameter line: `SAMPLES;LIBRARY;[.] SYMBOL`, and more fields.
    init?(_ line: Substring) {
      let fields = line.split(separator: ";").map { $0.trimmingCharacters(in: .whitespaces) }
      guard fields.count >= 3, let samples = Int(fields[0]) else { return nil }
      self.samples = samples
      library = fields[1] == "[kernel.kallsyms]" ? "kernel" : fields[1]
      module = Self.module(of: fields[2].dropFirst(4))
    }

    private static func module(of symbol: Substring) -> String {
      if symbol.hasPrefix("CNIOBoringSSL") { return "BoringSSL" }
      if symbol.hasPrefix("swift_") || symbol.contains("5swift") { return "Swift runtime" }
      guard symbol.hasPrefix("$s") else { return "C and C++" }
      // A mangled name begins with the length and the name of its module; those of the standard library are shorter.
      let digits = symbol.dropFirst(2).prefix { $0.isNumber }
      guard let length = Int(digits), length > 0 else { return "Swift" }
      return String(symbol.dropFirst(2 + digits.count).prefix(length))
    }
  }

  private static func text(_ symbols: [Symbol], by key: KeyPath<Symbol, String>) -> String {
    var sums: [String: Int] = [:]
    for symbol in symbols { sums[symbol[keyPath: key], default: 0] += symbol.samples }
    let all = Double(symbols.reduce(0) { $0 + $1.samples })
    let shares = sums.mapValues { Double($0) * 100 / all }
    let shown = shares.filter { $0.value >= least }.sorted { $0.value > $1.value }
    let others = shares.values.filter { $0 < least }.reduce(0, +)
    return shown.map { "\($0.key) \($0.value.text(1)) %" }.joined(separator: ", ") + "; others \(others.text(1)) %"
  }
}
