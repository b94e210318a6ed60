// SPDX-License-Identifier: Apache-2.0
import MobileAuth
import SQLite

/// Protects audit entries from being displaced: the number of entries that a server causes per hour is limited, and
/// decision entries are kept longer than others.
extension Vault {
  /// Appends the entry, unless its server has reached the limit of this hour. The first omitted entry is replaced by a
  /// `leftOut` entry.
  /// - Parameters:
  ///   - isAnswered: whether the user has answered the entry's request; the limit then does not apply.
  ///   - counts: the entries that this transaction has counted.
  func append(
    bounded entry: AuditEntry, isAnswered: Bool = false, _ counts: inout HourlyCounts,
    on connection: borrowing Connection
  ) throws {
    guard !isAnswered, entry.kind.isServersDoing, let account = entry.account else {
      counts.forget()
      return try append(entry, on: connection)
    }
    let server = try connection.rows("SELECT server FROM accounts WHERE id = ?", account.text) { try $0.text(0) }.first
    let time = entry.wallClockMilliseconds
    let count: Int64
    if let known = counts.lines(of: server, at: time) {
      count = known
    } else {
      count = try linesInTheHour(before: time, at: server, on: connection)
    }
    counts.note(count + 1, of: server, at: time)
    guard count <= hourlyLimit else { return }
    guard count < hourlyLimit else {
      return try append(
        AuditEntry(
          .leftOut, account: account, detail: AuditEntry.leftOutDetail(limit: Int(hourlyLimit)),
          wallClockMilliseconds: entry.wallClockMilliseconds), on: connection)
    }
    try append(entry, on: connection)
  }

  /// Counts entries by the board's wall clock. Entries with a later time, left by a clock that was set back, do not
  /// count. Reads the chain from its newest entry back, beyond the entries of a clock that was unset for a while, but
  /// not whole: the commit before an answer is sent must not take longer the longer the chain is.
  private func linesInTheHour(
    before now: Int64, at server: String?, on connection: borrowing Connection
  ) throws -> Int64 {
    guard let server else { return 0 }
    let (hourAgo, overflows) = now.subtractingReportingOverflow(3_600_000)
    let start = overflows ? Int64.min : hourAgo
    return try connection.rows(
      """
      SELECT count(*) FROM audit WHERE milliseconds BETWEEN ?1 AND ?2
        AND sequence > ifnull((
          SELECT sequence FROM audit WHERE milliseconds < ?1 ORDER BY sequence DESC LIMIT 1 OFFSET ?3), 0)
        AND kind IN ('announced', 'opened', 'refused', 'settled', 'left-out', 'panel-unavailable', 'button-stuck')
        AND account IN (SELECT id FROM accounts WHERE server = ?4)
      """, start, now, hourlyLimit, server
    ) { try $0.integer(0) }.first ?? 0
  }

  /// Copies decision entries to the second chain, without those that cannot be verified, so that a changed entry does
  /// not get a valid MAC.
  /// - Parameter mac: the MAC of the entry before the first.
  /// - Returns: the number of the first entry that was changed, added or missing; nil if there is none.
  func retainDecisions(
    through last: Int64, after mac: [UInt8], on connection: borrowing Connection
  ) throws -> Int64? {
    guard var head = try AuditHead.read(of: .retained, from: connection, keys) else {
      throw StateStoreError.corrupt(.retainedAuditHead)
    }
    let rows = try verifiedRows("FROM audit WHERE sequence <= ? ORDER BY sequence", last, after: mac, on: connection)
    let decided = Set(
      try connection.rows(
        "SELECT txn FROM audit WHERE kind = 'decided' UNION SELECT txn FROM audit_kept WHERE kind = 'decided'"
      ) { try? $0.optionalText(0) })
    for row in rows.compactMap(\.row) {
      let isEnding = row.kind == AuditEntry.Kind.settled.rawValue && decided.contains(row.transaction)
      guard isEnding || AuditEntry.Kind(rawValue: row.kind)?.isDecision == true else { continue }
      let kept = row.retained(after: head.lastMAC, keys)
      try kept.insert(.retained, into: connection)
      (head.last, head.lastMAC) = (kept.sequence, kept.mac)
    }
    let brokenBefore = try dropOldestRetained(&head, on: connection)
    try head.write(.retained, to: connection, keys)
    let firstBreak = rows.first { $0.row == nil }?.sequence
    return brokenBefore ?? firstBreak ?? (rows.last?.sequence == last ? nil : last)
  }

  /// Reads rows of a chain in their order.
  /// - Parameters:
  ///   - selection: the rest of the query, with one parameter.
  ///   - mac: the MAC of the entry before the first.
  /// - Returns: of each its number and its MAC as stored, and the row; nil if it was changed, or does not follow the
  ///   one before it.
  private func verifiedRows(
    _ selection: String, of table: AuditTable = .all, _ parameter: Int64, after mac: [UInt8],
    on connection: borrowing Connection
  ) throws -> [(sequence: Int64, mac: [UInt8], row: AuditRow?)] {
    var previous = mac
    return try connection.rows("SELECT \(AuditRow.columns) \(selection)", parameter) { stored in
      let mac = (try? stored.blob(6)) ?? []
      defer { previous = mac }
      let row = try? AuditRow(stored)
      return (try stored.integer(0), mac, row?.follows(previous, in: table, keys) == true ? row : nil)
    }
  }

  /// - Returns: the number of the first dropped entry that was changed or added, follows a missing one, or says so of
  ///   another one; nil if there is none.
  private func dropOldestRetained(_ head: inout AuditHead, on connection: borrowing Connection) throws -> Int64? {
    let count = try connection.rows("SELECT count(*) FROM audit_kept") { try $0.integer(0) }.first ?? 0
    guard count > auditCapacity else { return nil }
    let oldest = try verifiedRows(
      "FROM audit_kept ORDER BY sequence LIMIT ?", of: .retained, count - auditCapacity + auditCapacity / 10,
      after: head.droppedMAC, on: connection)
    guard let last = oldest.last else { return nil }
    try connection.run("DELETE FROM audit_kept WHERE sequence <= ?", last.sequence)
    (head.dropped, head.droppedMAC) = (last.sequence, last.mac)
    return oldest.first { $0.row?.isBreak ?? true }?.sequence
  }

  /// Verifies the second chain.
  /// - Returns: the first entry that is not as written, and why; nil if the chain is intact.
  func retainedChainError(on connection: borrowing Connection) throws -> (line: Int64, why: String)? {
    guard let head = try AuditHead.read(of: .retained, from: connection, keys) else {
      return (0, "the head of the kept entries has a wrong MAC")
    }
    let rows = try connection.rows("SELECT \(AuditRow.columns) FROM audit_kept ORDER BY sequence") {
      (line: try $0.integer(0), row: try? AuditRow($0))
    }
    var mac = head.droppedMAC
    for (line, row) in rows {
      guard let row, row.follows(mac, in: .retained, keys) else { return (line, "changed, added, or after a gap") }
      mac = row.mac
    }
    return mac == head.lastMAC ? nil : (head.last, "missing among the kept entries")
  }
}

/// The number of entries in the hour, per server: counted in the audit chain once per transaction, because that reads
/// the whole chain while other writers wait.
struct HourlyCounts {
  /// Milliseconds. Entries that are further apart are counted separately: the wall clock may have been set.
  private static let tolerance: Int64 = 60_000

  private var counted: [String?: (time: Int64, count: Int64)] = [:]

  /// Nil if the entries have to be counted in the chain.
  func lines(of server: String?, at time: Int64) -> Int64? {
    counted[server].flatMap { $0.time.isFar(from: time, tolerance: Self.tolerance) ? nil : $0.count }
  }

  mutating func note(_ count: Int64, of server: String?, at time: Int64) {
    let isKnown = lines(of: server, at: time) != nil
    counted[server] = (time: isKnown ? counted[server]?.time ?? time : time, count: count)
  }

  /// Counts again: an entry was appended that is not limited, but may count.
  mutating func forget() { counted = [:] }
}

extension Int64 {
  fileprivate func isFar(from other: Int64, tolerance: Int64) -> Bool {
    let (difference, overflows) = subtractingReportingOverflow(other)
    return overflows || difference.magnitude > tolerance.magnitude
  }
}

extension AuditEntry.Kind {
  /// Whether a server's request causes the entry, without a user action.
  fileprivate var isServersDoing: Bool {
    switch self {
    case .announced, .opened, .refused, .settled, .panelUnavailable, .buttonStuck: true
    default: false
    }
  }

  /// Whether entries of this kind are kept longest. The end of an answered request is kept, too.
  fileprivate var isDecision: Bool {
    switch self {
    case .enrolled, .removed, .renamed, .wiped, .disenrolled, .locked, .unlocked, .decided, .loggedIn, .loggedOut,
      .pinsDropped, .originsChanged, .pinSet, .pinChanged, .pinWrong, .choiceWrong, .authenticatorRegistered,
      .authenticatorDeregistered, .authenticatorPreferred, .authenticatorRevoked, .authenticatorFailed, .unconfirmed,
      .chainBroken:
      true
    case .announced, .opened, .refused, .settled, .leftOut, .codeShown, .buttonStuck, .panelUnavailable: false
    }
  }
}
