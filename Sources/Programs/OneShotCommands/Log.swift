// SPDX-License-Identifier: Apache-2.0
import ApprovalTokenCommands
import ArgumentParser
import FoundationEssentials
import MobileAuth
import TokenDaemon
import Vault

extension Log: OneShotCommand {
  private struct Line: Encodable {
    var sequence: Int64
    var time: String
    var kind: String
    var account: String?
    var transaction: String?
    var detail: String
  }

  private struct Verification: Encodable {
    var intact: Bool
    var lines: Int64?
    var firstLine: Int64?
    var brokenLine: Int64?
    var why: String?

    enum CodingKeys: String, CodingKey {
      case intact, lines
      case firstLine = "first_line"
      case brokenLine = "broken_line"
      case why
    }
  }

  package func perform() async throws {
    try await reporting(json) {
      let vault = try state.openVault(creating: false)
      try verify ? prove(vault) : list(vault)
    }
  }

  private func list(_ vault: Vault) throws {
    let lines = try vault.auditLines(newest: count).map {
      Line(
        sequence: $0.sequence, time: Self.text(milliseconds: $0.entry.wallClockMilliseconds),
        kind: $0.entry.kind.rawValue, account: $0.entry.account?.text, transaction: $0.entry.transaction?.text,
        detail: $0.entry.detail)
    }
    json.print(lines) { lines in
      lines.map { line in
        [String(line.sequence), line.time, line.kind, line.transaction ?? "-", line.account ?? "-", line.detail]
          .filter { !$0.isEmpty }.joined(separator: "  ")
      }.joined(separator: "\n")
    }
  }

  private func prove(_ vault: Vault) throws {
    switch try vault.verifyAudit() {
    case .intact(let lines, let first):
      json.print(Verification(intact: true, lines: lines, firstLine: first)) { _ in
        "intact: \(lines) lines\(first > 1 ? ", from line \(first) on" : "")"
      }
    case .broken(let line, let why):
      json.print(Verification(intact: false, brokenLine: line, why: why)) { _ in
        line == 0 ? "broken: \(why)" : "broken at line \(line): \(why)"
      }
      throw ExitCode(1)
    }
  }

  static func text(milliseconds: Int64) -> String {
    // Limit years to four digits, because a stored timestamp can have any value.
    Date(timeIntervalSince1970: Double(min(max(milliseconds / 1000, 0), 253_402_300_799))).formatted(.iso8601)
  }
}
