// SPDX-License-Identifier: Apache-2.0
package import MobileAuth
import SQLite

/// An entry of the audit chain.
package struct AuditLine: Sendable, Equatable {
  /// Starts at 1 and is never reused.
  package let sequence: Int64
  package let entry: AuditEntry
}

/// The result of verifying the audit chain.
package enum AuditVerification: Sendable, Equatable {
  /// - Parameters:
  ///   - lines: the number of consecutive entries; older decision entries can exist in addition.
  ///   - first: the number of the oldest of them; 1 unless older entries were dropped.
  case intact(lines: Int64, first: Int64)
  /// - Parameter line: the first entry that is not as written; 0 is the head.
  case broken(line: Int64, why: String)
}

extension Vault {
  private static let bothChains = "(SELECT * FROM audit UNION ALL SELECT * FROM audit_kept)"

  /// The numbers of the newest entries, oldest first, and the entries; nil for one that is damaged and cannot be read.
  /// Not verified; see `verifyAudit()`.
  package func auditRows(newest limit: Int) throws(StateStoreError) -> [(sequence: Int64, line: AuditLine?)] {
    try snapshot { connection in
      try connection.rows(
        "SELECT \(AuditRow.columns) FROM \(Self.bothChains) ORDER BY sequence DESC LIMIT ?", Int64(limit)
      ) { row in
        (sequence: try row.integer(0), line: try unlessDamaged { try auditLine(in: row) })
      }.reversed()
    }
  }

  /// Verifies all entries of both chains.
  package func verifyAudit() throws(StateStoreError) -> AuditVerification {
    try snapshot { connection in
      guard let head = try AuditHead.read(from: connection, keys) else {
        return .broken(line: 0, why: "the head has a wrong MAC")
      }
      var next = head.dropped + 1
      var mac = head.droppedMAC
      do {
        _ = try connection.rows("SELECT \(AuditRow.columns) FROM audit ORDER BY sequence") { row in
          let line = try row.integer(0)
          guard line <= next else { throw AuditChainError(line: next, why: "missing") }
          guard line == next, line <= head.last else { throw AuditChainError(line: line, why: "added") }
          // A row that cannot be decoded (such as a text that is not UTF-8) was changed.
          guard let row = try? AuditRow(row), row.follows(mac, keys) else {
            throw AuditChainError(line: line, why: "changed")
          }
          next += 1
          mac = row.mac
        }
        guard next > head.last else { throw AuditChainError(line: next, why: "missing, with all later entries") }
        guard mac == head.lastMAC else { throw AuditChainError(line: head.last, why: "not the last one in the head") }
      } catch let found as AuditChainError {
        return .broken(line: found.line, why: found.why)
      }
      if let (line, why) = try retainedChainError(on: connection) { return .broken(line: line, why: why) }
      let breaks = try connection.rows(
        "SELECT sequence FROM \(Self.bothChains) WHERE kind = ? ORDER BY sequence LIMIT 1",
        AuditEntry.Kind.chainBroken.rawValue
      ) { try $0.integer(0) }
      if let line = breaks.first { return .broken(line: line, why: "it says that an earlier one was not intact") }
      return .intact(lines: head.last - head.dropped, first: head.dropped + 1)
    }
  }

  private func auditLine(in row: borrowing Row) throws -> AuditLine {
    let row = try AuditRow(row)
    let transaction = row.transaction.flatMap(TransactionID.init)
    guard let kind = AuditEntry.Kind(rawValue: row.kind), transaction?.text == row.transaction else {
      throw StateStoreError.corrupt(.auditEntry(row.sequence))
    }
    let entry = AuditEntry(
      kind, account: row.account.map(AccountID.init), transaction: transaction, detail: row.detail,
      wallClockMilliseconds: row.milliseconds)
    return AuditLine(sequence: row.sequence, entry: entry)
  }
}

private struct AuditChainError: Error {
  let line: Int64
  let why: String
}
