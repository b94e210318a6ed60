// SPDX-License-Identifier: Apache-2.0
import ArgumentParser
import Foundation

@main
struct Bench: ParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Measure the token and its token server on this machine, over loopback.",
    discussion:
      "scripts/bench builds everything and runs this. Prints one table; what it is doing is on standard error.")

  enum Measurement: String, CaseIterable, ExpressibleByArgument {
    case latency, processes, storage, line, pin, push, pingam, idle, start, streams, transactions
    /// Requires PostgreSQL and HAProxy.
    case scale
    /// Requires perf, and programs with symbols.
    case profile
    /// Only inside the bench kernel.
    case hardware

    static let everywhere = allCases.filter { ![.hardware, .scale, .profile].contains($0) }

    func rows(on stage: Stage) throws -> [Row] {
      switch self {
      case .latency: try LatencyRows.measure(on: stage)
      case .processes: try ProcessRows.measure(on: stage)
      case .storage: try StorageRows.measure(on: stage)
      case .line: try LineRows.measure(on: stage)
      case .pin: try PINRows.measure(on: stage)
      case .push: try PushRows.measure(on: stage) + PushIdleRows.measure(on: stage)
      case .pingam: try PingAMRows.measure(on: stage) + PingAMIdleRows.measure(on: stage)
      case .idle: try IdleRows.measure(on: stage)
      case .start: try StartRow.measure(on: stage)
      case .streams: try StreamRows.measure(on: stage)
      case .transactions: try TransactionRows.measure(on: stage)
      case .profile: try ProfileRows.measure(on: stage)
      case .scale: try ScaleRows.measure(on: stage)
      case .hardware: try HardwareRows.measure(on: stage)
      }
    }
  }

  @Option(help: "Where approval-token, approval-tokend and token-server are.", completion: .directory)
  var programs: String

  @Option(help: "A Markdown file whose table gets the rows that were measured, with the date and the commit.")
  var write: String?

  @Argument(
    help: "What to measure. Default: everything but scale, profile and hardware, which need more programs or a kernel.")
  var measurements: [Measurement] = Measurement.everywhere

  func run() throws {
    let stage = try Stage(programs: programs)
    defer { stage.clear() }
    var rows: [Row] = []
    for measurement in measurements {
      FileHandle.standardError.write(Data("measuring \(measurement.rawValue) …\n".utf8))
      rows += try measurement.rows(on: stage)
    }
    print(Table.text(rows))
    if let write { try Report(file: write).replace(with: rows) }
  }
}
