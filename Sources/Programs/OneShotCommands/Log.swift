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

    init(_ line: AuditLine) {
      (sequence, detail) = (line.sequence, line.entry.detail)
      time = Log.text(milliseconds: line.entry.wallClockMilliseconds)
      kind = line.entry.kind.rawValue
      account = line.entry.account?.text
      transaction = line.entry.transaction?.text
    }
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
    let rows = try vault.auditRows(newest: count)
    json.print(rows.compactMap { $0.line.map(Line.init) }) { _ in
      rows.map { Self.text(of: $0.line, $0.sequence) }.joined(separator: "\n")
    }
    if let unreadable = rows.first(where: { $0.line == nil }) {
      throw StateStoreError.corrupt(.auditEntry(unreadable.sequence))
    }
  }

  /// - Parameter line: nil if it cannot be read.
  static func text(of line: AuditLine?, _ sequence: Int64) -> String {
    guard let line = line.map(Line.init) else { return "\(sequence)  cannot be read" }
    return [String(sequence), line.time, line.kind, line.transaction ?? "-", line.account ?? "-", line.detail]
      .filter { !$0.isEmpty }.joined(separator: "  ")
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
