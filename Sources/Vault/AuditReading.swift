public import MobileAuth
import SQLite

/// One line of the audit chain.
public struct AuditLine: Sendable, Equatable {
  /// Counts from 1 and never repeats.
  public let sequence: Int64
  public let entry: AuditEntry
}

/// Whether the audit chain is what was written.
public enum AuditVerification: Sendable, Equatable {
  /// - Parameters:
  ///   - lines: how many there are without gaps; older ones about decisions may be kept beside them.
  ///   - first: the number of the oldest of them; 1 unless older ones were dropped for space.
  case intact(lines: Int64, first: Int64)
  /// - Parameter line: the first that is not what was written; 0 is the head.
  case broken(line: Int64, why: String)
}

extension Vault {
  private static let bothChains = "(SELECT * FROM audit UNION ALL SELECT * FROM audit_kept)"

  /// The newest lines, oldest first. They are not verified; `verifyAudit()` does that.
  public func auditLines(newest limit: Int) throws(CustodyFault) -> [AuditLine] {
    try snapshot { connection in
      try connection.rows(
        "SELECT \(AuditRow.columns) FROM \(Self.bothChains) ORDER BY sequence DESC LIMIT ?", Int64(limit),
        as: auditLine(in:)
      ).reversed()
    }
  }

  /// At most `limit` lines after line `sequence`, oldest first: page by page, or what is new since the last look.
  public func auditLines(after sequence: Int64, limit: Int) throws(CustodyFault) -> [AuditLine] {
    try snapshot { connection in
      try connection.rows(
        "SELECT \(AuditRow.columns) FROM \(Self.bothChains) WHERE sequence > ? ORDER BY sequence LIMIT ?", sequence,
        Int64(limit),
        as: auditLine(in:))
    }
  }

  /// Walks all lines, and those that outlast the others.
  public func verifyAudit() throws(CustodyFault) -> AuditVerification {
    try snapshot { connection in
      guard let head = try AuditHead.read(from: connection, keys) else {
        return .broken(line: 0, why: "the head does not carry this vault's mark")
      }
      var next = head.dropped + 1
      var mark = head.droppedMark
      do {
        _ = try connection.rows("SELECT \(AuditRow.columns) FROM audit ORDER BY sequence") { row in
          let line = try row.integer(0)
          guard line <= next else { throw AuditBreak(line: next, why: "missing") }
          guard line == next, line <= head.last else { throw AuditBreak(line: line, why: "added") }
          // A row that cannot even be read (a text that is not UTF-8) is not what was written either.
          guard let row = try? AuditRow(row), row.follows(mark, keys) else {
            throw AuditBreak(line: line, why: "changed")
          }
          next += 1
          mark = row.mark
        }
        guard next > head.last else { throw AuditBreak(line: next, why: "missing, and all after it") }
        guard mark == head.lastMark else { throw AuditBreak(line: head.last, why: "not the one the head names") }
      } catch let found as AuditBreak {
        return .broken(line: found.line, why: found.why)
      }
      if let (line, why) = try keptBreak(on: connection) { return .broken(line: line, why: why) }
      return .intact(lines: head.last - head.dropped, first: head.dropped + 1)
    }
  }

  private func auditLine(in row: borrowing Row) throws -> AuditLine {
    let row = try AuditRow(row)
    let transaction = row.transaction.flatMap(TransactionID.init)
    guard let kind = AuditEntry.Kind(rawValue: row.kind), transaction?.text == row.transaction else {
      throw CustodyFault.damaged("audit line \(row.sequence)")
    }
    let entry = AuditEntry(
      kind, account: row.account.map(AccountID.init), transaction: transaction, detail: row.detail,
      wallClockMilliseconds: row.milliseconds)
    return AuditLine(sequence: row.sequence, entry: entry)
  }
}

private struct AuditBreak: Error {
  let line: Int64
  let why: String
}
