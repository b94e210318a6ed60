// SPDX-License-Identifier: Apache-2.0
import DisplayText
import MobileAuth
import SQLite

/// The two audit chains: all entries up to the capacity, and decision entries, which move to the second chain when the
/// first drops old entries.
enum AuditTable: String {
  case all = "audit"
  case retained = "audit_kept"

  var head: String { self == .all ? "audit_head" : "audit_kept_head" }
}

/// The head of an audit chain. Entries are numbered from 1 (in the second chain as in the first), and each has a MAC
/// that covers the previous entry's MAC. The head contains both ends of the chain, so that entries missing at the start
/// or the end are detected. If an older head is put back, missing newest entries are not: that would need a counter
/// outside the storage.
struct AuditHead {
  /// The number of the last dropped entry, and its MAC.
  var dropped: Int64
  var droppedMAC: [UInt8]
  /// The number of the newest entry, and its MAC.
  var last: Int64
  var lastMAC: [UInt8]

  /// The maximum number of entries.
  static let longest = Int64.max / 2

  static let empty = AuditHead(
    dropped: 0, droppedMAC: [UInt8](repeating: 0, count: 32), last: 0, lastMAC: [UInt8](repeating: 0, count: 32))

  /// - Returns: nil if the head is missing or its MAC is wrong.
  static func read(
    of table: AuditTable = .all, from connection: borrowing Connection, _ keys: VaultKeys
  ) throws -> AuditHead? {
    let heads = try connection.rows("SELECT dropped, dropped_mark, last, last_mark, mark FROM \(table.head)") { row in
      let head = AuditHead(
        dropped: try row.integer(0), droppedMAC: try row.blob(1), last: try row.integer(2),
        lastMAC: try row.blob(3))
      return (head, mac: try row.blob(4))
    }
    guard let (head, mac) = heads.first, keys.isValidAuditMAC(mac, of: head.canonical(table)),
      (0...longest).contains(head.last), (0...head.last).contains(head.dropped)
    else { return nil }
    return head
  }

  func write(
    _ table: AuditTable = .all, to connection: borrowing Connection, _ keys: VaultKeys
  ) throws {
    try connection.run(
      "INSERT OR REPLACE INTO \(table.head) VALUES (1, ?, ?, ?, ?, ?)", dropped, droppedMAC, last, lastMAC,
      keys.auditMAC(canonical(table)))
  }

  private func canonical(_ table: AuditTable) -> CanonicalBytes {
    var bytes = CanonicalBytes(table.head)
    bytes.add(dropped)
    bytes.add(droppedMAC)
    bytes.add(last)
    bytes.add(lastMAC)
    return bytes
  }
}

/// A row of an audit table, not verified.
struct AuditRow {
  static let columns = "sequence, kind, account, txn, detail, milliseconds, mark"

  let sequence: Int64
  let kind: String
  let account: String?
  let transaction: String?
  let detail: String
  let milliseconds: Int64
  private(set) var mac: [UInt8] = []

  /// Creates the row of an entry. The detail is limited to 500 Unicode scalars without control and format characters,
  /// because it can quote a server.
  init(_ entry: AuditEntry, sequence: Int64, after previousMark: [UInt8], _ keys: VaultKeys) {
    self.sequence = sequence
    kind = entry.kind.rawValue
    account = entry.account?.text
    transaction = entry.transaction?.text
    detail = entry.detail.sanitized(atMost: 500)
    milliseconds = entry.wallClockMilliseconds
    mac = keys.auditMAC(canonical(.all, after: previousMark))
  }

  /// The same entry, linked into the second chain.
  func retained(after previousMark: [UInt8], _ keys: VaultKeys) -> AuditRow {
    var row = self
    row.mac = keys.auditMAC(canonical(.retained, after: previousMark))
    return row
  }

  init(_ row: borrowing Row) throws {
    sequence = try row.integer(0)
    kind = try row.text(1)
    account = try row.optionalText(2)
    transaction = try row.optionalText(3)
    detail = try row.text(4)
    milliseconds = try row.integer(5)
    mac = try row.blob(6)
  }

  /// Whether it says that an earlier entry was changed, added or missing.
  var isBreak: Bool { kind == AuditEntry.Kind.chainBroken.rawValue }

  /// Replaces a row that another program has added with this number.
  func insert(_ table: AuditTable = .all, into connection: borrowing Connection) throws {
    try connection.run(
      "INSERT OR REPLACE INTO \(table.rawValue) (\(Self.columns)) VALUES (?, ?, ?, ?, ?, ?, ?)", sequence, kind,
      account, transaction, detail, milliseconds, mac)
  }

  func follows(_ previousMark: [UInt8], in table: AuditTable = .all, _ keys: VaultKeys) -> Bool {
    keys.isValidAuditMAC(mac, of: canonical(table, after: previousMark))
  }

  private func canonical(_ table: AuditTable, after previousMark: [UInt8]) -> CanonicalBytes {
    var bytes = CanonicalBytes(table.rawValue, kind, account, transaction, detail)
    bytes.add(previousMark)
    bytes.add(sequence)
    bytes.add(milliseconds)
    return bytes
  }
}

extension Vault {
  func append(_ entry: AuditEntry, on connection: borrowing Connection) throws {
    guard var head = try AuditHead.read(from: connection, keys) else {
      throw StateStoreError.corrupt(.auditHead)
    }
    try insert(entry, after: &head, on: connection)
    if head.last - head.dropped > auditCapacity, let number = try dropOldestTenth(&head, on: connection) {
      // Without it, the chain would be intact again.
      let entry = AuditEntry(
        .chainBroken, detail: "entry \(number)", wallClockMilliseconds: entry.wallClockMilliseconds)
      try insert(entry, after: &head, on: connection)
    }
    try head.write(to: connection, keys)
  }

  private func insert(_ entry: AuditEntry, after head: inout AuditHead, on connection: borrowing Connection) throws {
    let row = AuditRow(entry, sequence: head.last + 1, after: head.lastMAC, keys)
    try row.insert(into: connection)
    (head.last, head.lastMAC) = (row.sequence, row.mac)
  }

  /// Drops the oldest tenth of the entries. The MAC of the last dropped entry stays in the head, so that the first
  /// remaining entry can be verified. If that entry is missing or cannot be read, no remaining one can be: the chain
  /// stays broken, and the token usable.
  /// - Returns: the number of the first entry that was changed, added or missing; nil if there is none.
  private func dropOldestTenth(_ head: inout AuditHead, on connection: borrowing Connection) throws -> Int64? {
    let dropped = head.last - auditCapacity + auditCapacity / 10
    let macs = try connection.rows("SELECT mark FROM audit WHERE sequence = ?", dropped) { (try? $0.blob(0)) ?? [] }
    let firstBreak = try retainDecisions(through: dropped, after: head.droppedMAC, on: connection)
    try connection.run("DELETE FROM audit WHERE sequence <= ?", dropped)
    head.dropped = dropped
    head.droppedMAC = macs.first ?? []
    return firstBreak
  }
}
