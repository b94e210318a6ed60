import MobileAuth
import SQLite
import Testing
import Vault

@Suite struct `Audit lines` {
  private let playground: Playground

  init() throws { playground = try Playground(in: "/dev/shm") }

  @Test(arguments: AuditEntry.Kind.allCases)
  func `Come back as they were written`(kind: AuditEntry.Kind) throws {
    let vault = try playground.vault()
    let entries = [
      AuditEntry(kind, account: alice, transaction: login, detail: "a\u{0}b \u{1F511}", wallClockMilliseconds: .max),
      AuditEntry(kind, wallClockMilliseconds: .min),
      AuditEntry(kind, account: AccountID(""), wallClockMilliseconds: 0),
    ]
    for entry in entries { try vault.record(entry) }
    #expect(try vault.auditLines(newest: 10).map(\.entry) == entries)
    #expect(try vault.auditLines(newest: 10).map(\.sequence) == [1, 2, 3])
    #expect(try vault.verifyAudit() == .intact(lines: 3, first: 1))
  }

  @Test func `Can be read in pages and from the end`() throws {
    let vault = try playground.vault()
    for number in 1...7 { try vault.record(entry(.opened, nil, "\(number)")) }
    #expect(try vault.auditLines(newest: 2).map(\.sequence) == [6, 7])
    #expect(try vault.auditLines(newest: 0).isEmpty)
    #expect(try vault.auditLines(after: 0, limit: 3).map(\.sequence) == [1, 2, 3])
    #expect(try vault.auditLines(after: 3, limit: 3).map(\.sequence) == [4, 5, 6])
    #expect(try vault.auditLines(after: 6, limit: 3).map(\.sequence) == [7])
    #expect(try vault.auditLines(after: 7, limit: 3).isEmpty)
  }

  @Test func `Are cut off where somebody else's text grows too long`() throws {
    let vault = try playground.vault()
    // One letter with very many accents is one Character; the bound counts scalars.
    try vault.record(entry(.refused, nil, "e" + String(repeating: "\u{301}", count: 100_000)))
    let detail = try vault.auditLines(newest: 1)[0].entry.detail.unicodeScalars
    #expect(detail.count == 500 && detail.last == "…")
    #expect(try vault.verifyAudit() == .intact(lines: 1, first: 1))
  }

  @Test func `Make room a tenth at a time, and the rest still verifies`() throws {
    let vault = try playground.vault(auditCapacity: 20)
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
    try playground.raw { try $0.execute("DELETE FROM audit WHERE sequence = \(kept[0].sequence)") }
    #expect(try vault.verifyAudit() == .broken(line: kept[0].sequence, why: "missing"))
  }
}
