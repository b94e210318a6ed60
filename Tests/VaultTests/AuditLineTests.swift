// SPDX-License-Identifier: Apache-2.0
import MobileAuth
import SQLite
import Testing
import Vault

@Suite("Audit lines", .timeLimit(.minutes(5))) struct AuditLineTests {
  private let fixture: VaultFixture

  init() throws { fixture = try VaultFixture(in: "/dev/shm") }

  @Test("Come back as they were written", arguments: AuditEntry.Kind.allCases.filter { $0 != .chainBroken })
  func comeBackAsTheyWereWritten(kind: AuditEntry.Kind) throws {
    let vault = try fixture.vault()
    let entries = [
      AuditEntry(kind, account: alice, transaction: login, detail: "ab \u{1F511}", wallClockMilliseconds: .max),
      AuditEntry(kind, wallClockMilliseconds: .min),
      AuditEntry(kind, account: AccountID(""), wallClockMilliseconds: 0),
    ]
    for entry in entries { try vault.record(entry) }
    #expect(try vault.auditLines(newest: 10).map(\.entry) == entries)
    #expect(try vault.auditLines(newest: 10).map(\.sequence) == [1, 2, 3])
    #expect(try vault.verifyAudit() == .intact(lines: 3, first: 1))
  }

  @Test("Can be read from the end") func canBeReadFromTheEnd() throws {
    let vault = try fixture.vault()
    for number in 1...7 { try vault.record(entry(.opened, nil, "\(number)")) }
    #expect(try vault.auditLines(newest: 2).map(\.sequence) == [6, 7])
    #expect(try vault.auditLines(newest: 0).isEmpty)
  }

  @Test("Are truncated where a foreign text is too long") func areTruncatedWhereAForeignTextIsTooLong() throws {
    let vault = try fixture.vault()
    // One letter with many combining accents is one Character; the bound counts scalars.
    try vault.record(entry(.refused, nil, "e" + String(repeating: "\u{301}", count: 100_000)))
    let detail = try vault.auditLines(newest: 1)[0].entry.detail.unicodeScalars
    #expect(detail.count == 500 && detail.last == "…")
    #expect(try vault.verifyAudit() == .intact(lines: 1, first: 1))
  }

  @Test("Are dropped a tenth at a time, and the rest still verifies")
  func areDroppedATenthAtATimeAndTheRestStillVerifies() throws {
    let vault = try fixture.vault(auditCapacity: 20)
    for number in 1...20 { try vault.record(entry(.opened, nil, "\(number)")) }
    #expect(try vault.verifyAudit() == .intact(lines: 20, first: 1))
    try vault.record(entry(.opened, nil, "21"))
    #expect(try vault.verifyAudit() == .intact(lines: 18, first: 4))
    for number in 22...100 {
      try vault.record(entry(.opened, nil, "\(number)"))
      guard case .intact(let lines, let first) = try vault.verifyAudit() else {
        Issue.record("line \(number)")
        return
      }
      #expect((18...20).contains(lines) && first + lines - 1 == Int64(number), "line \(number)")
    }
    let kept = try vault.auditLines(newest: 100)
    #expect(kept.map(\.entry.detail) == kept.map { "\($0.sequence)" })
    try fixture.raw { try $0.execute("DELETE FROM audit WHERE sequence = \(kept[0].sequence)") }
    #expect(try vault.verifyAudit() == .broken(line: kept[0].sequence, why: "missing"))
  }

  /// Fails if a server that sends many requests displaces decision entries.
  @Test("Many push requests neither displace decision entries nor fill the chain")
  func pushBombingKeepsDecisions() throws {
    let vault = try fixture.vault(auditCapacity: 20, hourlyLimit: 6)
    try vault.put(server(acme))
    try vault.put(account(alice))
    try vault.record(entry(.enrolled, alice))
    try vault.journal(intent(login, alice), about(login, .decided))
    try vault.resolveIntent(login, about(login, .settled))
    for hour in 1...40 {
      for number in 1...50 {
        for kind in [AuditEntry.Kind.announced, .panelUnavailable, .opened] {
          try vault.record(AuditEntry(kind, account: alice, detail: "\(number)", wallClockMilliseconds: ms(hour)))
        }
        let end = AuditEntry(.settled, account: alice, detail: "expired", wallClockMilliseconds: ms(hour))
        try vault.resolveIntent(payment, end)
      }
    }
    let kinds = try vault.auditLines(newest: 100).map(\.entry.kind)
    #expect(kinds.prefix(3) == [.enrolled, .decided, .settled])
    #expect(kinds.contains(.leftOut))
    // Six entries per hour, and one that reports the omission.
    #expect(try vault.auditLines(newest: 1)[0].sequence == 3 + 40 * 7)
    guard case .intact = try vault.verifyAudit() else {
      Issue.record("the chains do not verify")
      return
    }
    #expect(try fixture.vault(auditCapacity: 20).auditLines(newest: 100).count == kinds.count)
  }

  @Test("The hourly limit applies to changes that are written together") func limitOfDeferred() throws {
    let vault = try fixture.vault(hourlyLimit: 6)
    try vault.put(server(acme))
    try vault.put(account(alice))
    for _ in 1...5 {
      for number in 1...20 {
        vault.enqueue(.record(AuditEntry(.opened, account: alice, detail: "\(number)", wallClockMilliseconds: ms(1))))
      }
      #expect(vault.queueLength == 20)
      try vault.flush()
    }
    for hour in [3, 1] {
      for _ in 1...20 { vault.enqueue(.record(AuditEntry(.opened, account: alice, wallClockMilliseconds: ms(hour)))) }
    }
    try vault.flush()
    let kinds = try vault.auditLines(newest: 100).map(\.entry.kind)
    let hour = [AuditEntry.Kind](repeating: .opened, count: 6) + [.leftOut]
    #expect(kinds == hour + hour)
  }

  @Test("The hourly limit counts entries before those of an unset clock") func limitBeyondUnsetClock() throws {
    let vault = try fixture.vault(hourlyLimit: 6)
    try vault.put(server(acme))
    try vault.put(account(alice))
    func record(_ milliseconds: Int64) throws {
      try vault.record(AuditEntry(.opened, account: alice, wallClockMilliseconds: milliseconds))
    }
    for _ in 1...4 { try record(ms(100)) }
    // The board has restarted, and has no time yet.
    for number in 1...5 { try record(Int64(number)) }
    for _ in 1...9 { try record(ms(100)) }
    let kinds = try vault.auditLines(newest: 3).map(\.entry.kind)
    #expect(kinds == [.opened, .opened, .leftOut])
  }

  @Test("The end of an answered request is recorded even above the hourly limit")
  func answersAreAlwaysWrittenDown() throws {
    let vault = try fixture.vault(hourlyLimit: 1)
    try vault.put(server(acme))
    try vault.put(account(alice))
    for _ in 1...5 { try vault.record(entry(.opened, alice)) }
    try vault.journal(intent(login, alice), about(login, .decided))
    try vault.resolveIntent(login, about(login, .settled))
    #expect(try vault.auditLines(newest: 9).map(\.entry.kind) == [.opened, .leftOut, .decided, .settled])
  }

  @Test(
    "A kept entry that was changed, removed or added is detected",
    arguments: [
      "UPDATE audit_kept SET detail = 'another'", "DELETE FROM audit_kept WHERE sequence = 1", "DELETE FROM audit_kept",
      "UPDATE audit_kept SET kind = 'unlocked'", "DELETE FROM audit_kept_head",
      "UPDATE audit_kept_head SET last = 1",
    ])
  func keptLinesVerify(sql: String) throws {
    let vault = try fixture.vault(auditCapacity: 10)
    for _ in 1...3 { try vault.record(entry(.locked, nil)) }
    for _ in 1...30 { try vault.record(entry(.opened, nil)) }
    #expect(try vault.auditLines(newest: 100).filter { $0.entry.kind == .locked }.map(\.sequence) == [1, 2, 3])
    try fixture.raw { try $0.execute(sql) }
    guard case .broken = try vault.verifyAudit() else {
      Issue.record("not found")
      return
    }
  }

  @Test("An entry that was changed before it is kept does not get a valid MAC")
  func changedLinesAreNotKept() throws {
    let vault = try fixture.vault(auditCapacity: 10)
    for _ in 1...3 { try vault.record(entry(.locked, nil)) }
    try fixture.raw { try $0.execute("UPDATE audit SET detail = 'another' WHERE sequence = 2") }
    #expect(try vault.verifyAudit() == .broken(line: 2, why: "changed"))
    for _ in 1...30 { try vault.record(entry(.opened, nil)) }
    #expect(try vault.auditLines(newest: 100).filter { $0.entry.kind == .locked }.map(\.sequence) == [1, 3])
    // Fails if the dropped entry takes the evidence with it.
    guard case .broken = try vault.verifyAudit() else {
      Issue.record("intact")
      return
    }
  }

  /// Fails if the evidence is dropped with the oldest of the kept entries.
  @Test(
    "A break stays, however many decisions follow",
    arguments: [
      "UPDATE audit SET detail = 'another' WHERE sequence = (SELECT min(sequence) FROM audit)",
      "UPDATE audit_kept SET detail = 'another' WHERE sequence = (SELECT min(sequence) FROM audit_kept)",
      "UPDATE audit_kept SET mark = x'' WHERE sequence = (SELECT max(sequence) FROM audit_kept)",
      "DELETE FROM audit_kept WHERE sequence = (SELECT min(sequence) FROM audit_kept)",
      """
      INSERT INTO audit_kept SELECT -3, kind, account, txn, detail, milliseconds, mark FROM audit_kept
      ORDER BY sequence LIMIT 1
      """,
    ])
  func breakStays(damage: String) throws {
    let vault = try fixture.vault(auditCapacity: 10)
    for _ in 1...25 { try vault.record(entry(.locked, nil)) }
    guard case .intact = try vault.verifyAudit() else {
      Issue.record("broken")
      return
    }
    try fixture.raw { try $0.execute(damage) }
    for _ in 1...12 {
      guard case .broken = try vault.verifyAudit() else {
        Issue.record("intact")
        return
      }
      for _ in 1...7 { try vault.record(entry(.locked, nil)) }
    }
  }

  /// Fails if what cannot be read blocks every later answer.
  @Test(
    "Entries that are damaged, missing or added are dropped, and the chain stays broken",
    arguments: [
      "UPDATE audit SET detail = CAST(x'ff' AS TEXT) WHERE sequence = 2",
      "UPDATE audit SET txn = CAST(x'ff' AS TEXT), kind = 'decided' WHERE sequence = 2",
      "UPDATE audit SET mark = x'' WHERE sequence = 2", "UPDATE audit SET mark = x'00' WHERE sequence = 4",
      "DELETE FROM audit WHERE sequence <= 3", "DELETE FROM audit WHERE sequence <= 6",
      // In the table of the kept entries.
      "INSERT INTO audit_kept SELECT 20, 'locked', account, txn, detail, milliseconds, mark FROM audit LIMIT 1",
      "INSERT INTO audit SELECT -7, kind, account, txn, detail, milliseconds, mark FROM audit WHERE sequence = 3",
    ])
  func damagedLines(damage: String) throws {
    let vault = try fixture.vault(auditCapacity: 10)
    for _ in 1...6 { try vault.record(entry(.locked, nil)) }
    #expect(try vault.verifyAudit() == .intact(lines: 6, first: 1))
    try fixture.raw { try $0.execute(damage) }
    for _ in 1...40 { try vault.record(entry(.opened, nil)) }
    guard case .broken = try vault.verifyAudit() else {
      Issue.record("intact")
      return
    }
    #expect(try vault.auditLines(newest: 1).first?.entry.kind == .opened)
  }
}

private func about(_ transaction: TransactionID, _ kind: AuditEntry.Kind) -> AuditEntry {
  AuditEntry(kind, account: alice, transaction: transaction, wallClockMilliseconds: 1_760_000_000_123)
}

/// The start of an hour in milliseconds since 1970.
private func ms(_ hour: Int) -> Int64 { Int64(hour) * 3_600_001 }
