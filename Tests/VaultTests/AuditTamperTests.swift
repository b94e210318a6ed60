// SPDX-License-Identifier: Apache-2.0
import MobileAuth
import SQLite
import Testing
import Vault

/// An attacker who has the SD card, but not the device secret, edits the audit chain.
@Suite("An audit chain that was tampered with", .timeLimit(.minutes(5))) struct AuditTamperTests {
  private let fixture: VaultFixture
  private let vault: Vault

  /// Six entries, with and without account and transaction.
  init() throws {
    fixture = try VaultFixture(in: "/dev/shm")
    vault = try fixture.vault()
    for number in 1...6 {
      try vault.record(
        AuditEntry(
          .decided, account: number % 2 == 0 ? alice : nil, transaction: number % 3 == 0 ? login : nil,
          detail: "détail \(number)", wallClockMilliseconds: 1_760_000_000_000 + Int64(number)))
    }
    #expect(try vault.verifyAudit() == .intact(lines: 6, first: 1))
  }

  @Test("Every changed byte of a line is found at that line", arguments: 1...6 as ClosedRange<Int64>)
  func everyChangedByteOfALineIsFoundAtThatLine(line: Int64) throws {
    try fixture.raw { raw in
      for column in ["kind", "account", "txn", "detail", "mark"] {
        let cells = try raw.rows(
          "SELECT CAST(\(column) AS BLOB) FROM audit WHERE sequence = ? AND \(column) NOT NULL", line
        ) {
          try $0.blob(0)
        }
        let type = column == "mark" ? "BLOB" : "TEXT"
        for cell in cells {
          for index in cell.indices {
            var changed = cell
            changed[index] ^= 0x02
            try raw.run("UPDATE audit SET \(column) = CAST(? AS \(type)) WHERE sequence = ?", changed, line)
            expectBreak(at: line, "\(column), byte \(index)")
          }
          try raw.run("UPDATE audit SET \(column) = CAST(? AS \(type)) WHERE sequence = ?", cell, line)
        }
        #expect(try vault.verifyAudit() == .intact(lines: 6, first: 1))
      }
      for bit in 0..<64 {
        let flip = "UPDATE audit SET milliseconds = (milliseconds | ?1) - (milliseconds & ?1) WHERE sequence = ?2"
        try raw.run(flip, Int64(bitPattern: 1 << bit), line)
        expectBreak(at: line, "milliseconds, bit \(bit)")
        try raw.run(flip, Int64(bitPattern: 1 << bit), line)
      }
    }
  }

  @Test(
    "Lines that move, come or go are found",
    arguments: [
      ("an account appears", "UPDATE audit SET account = 'alice' WHERE sequence = 3", 3),
      ("an account is empty, not absent", "UPDATE audit SET account = '' WHERE sequence = 3", 3),
      ("an account disappears", "UPDATE audit SET account = NULL WHERE sequence = 4", 4),
      ("text moves to the next column", "UPDATE audit SET account = 'alic', txn = 'e' WHERE sequence = 4", 4),
      ("the beginning is gone", "DELETE FROM audit WHERE sequence = 1", 1),
      ("a line is gone", "DELETE FROM audit WHERE sequence = 4", 4),
      ("the tail is gone", "DELETE FROM audit WHERE sequence >= 5", 5),
      ("everything is gone", "DELETE FROM audit", 1),
      (
        "a line is gone and the rest moves up",
        "DELETE FROM audit WHERE sequence = 3; UPDATE audit SET sequence = sequence - 1 WHERE sequence > 3", 3
      ),
      (
        "two lines change places",
        """
        UPDATE audit SET sequence = 100 WHERE sequence = 2; UPDATE audit SET sequence = 2 WHERE sequence = 5;
        UPDATE audit SET sequence = 5 WHERE sequence = 100
        """, 2
      ),
      ("a line is added", "INSERT INTO audit VALUES (7, 'decided', NULL, NULL, 'forged', 0, zeroblob(32))", 7),
      (
        "a line is repeated",
        """
        INSERT INTO audit SELECT 7, kind, account, txn, detail, milliseconds, mark FROM audit WHERE sequence = 6
        """, 7
      ),
      (
        "a line stands before the first",
        "INSERT INTO audit VALUES (0, 'decided', NULL, NULL, 'forged', 0, zeroblob(32))", 0
      ),
    ])
  func linesThatMoveComeOrGoAreFound(_ what: String, sql: String, line: Int64) throws {
    try fixture.raw { try $0.execute(sql) }
    expectBreak(at: line, what)
  }

  @Test(
    "A head that was edited fits nothing, and nothing is written after it",
    arguments: [
      "UPDATE audit_head SET last = 5, last_mark = (SELECT mark FROM audit WHERE sequence = 5)",
      "UPDATE audit_head SET dropped = 1, dropped_mark = (SELECT mark FROM audit WHERE sequence = 1)",
      "UPDATE audit_head SET last_mark = zeroblob(32)", "UPDATE audit_head SET dropped_mark = x'00'",
      "UPDATE audit_head SET mark = zeroblob(32)", "DELETE FROM audit_head",
    ])
  func headThatWasEditedFitsNothingAndNothingIsWrittenAfterIt(sql: String) throws {
    try fixture.raw { try $0.execute(sql) }
    expectBreak(at: 0, sql)
    let fault = #expect(throws: StateStoreError.self) { try vault.record(entry(.settled)) }
    guard case .corrupt(.auditHead) = fault else {
      Issue.record("\(String(describing: fault))")
      return
    }
    #expect(try vault.auditLines(newest: 10).count == 6)
  }

  @Test("An older head does not hide newer lines, only their removal") func olderHeadDoesNotHideNewerLines() throws {
    try fixture.raw { raw in
      try raw.execute("CREATE TABLE kept AS SELECT * FROM audit_head")
      try vault.record(entry(.settled))
      try raw.execute("REPLACE INTO audit_head SELECT * FROM kept")
    }
    expectBreak(at: 7, "older head")
    // The limit of what can be detected without a counter outside the storage.
    try fixture.raw { try $0.execute("DELETE FROM audit WHERE sequence = 7") }
    #expect(try vault.verifyAudit() == .intact(lines: 6, first: 1))
  }

  @Test(
    "A line that cannot be read is damage to the reader, and hides no other one",
    arguments: ["kind = 'approved'", "detail = CAST(x'FF' AS TEXT)", "txn = 'x'"])
  func lineThatCannotBeReadIsDamageToTheReaderAndHidesNoOtherOne(change: String) throws {
    try fixture.raw { try $0.execute("UPDATE audit SET \(change) WHERE sequence = 5") }
    let rows = try vault.auditRows(newest: 3)
    #expect(rows.map(\.sequence) == [4, 5, 6] && rows.map { $0.line?.sequence } == [4, nil, 6])
    #expect(try vault.auditLines(newest: 3).map(\.sequence) == [4, 6])
  }

  private func expectBreak(at line: Int64, _ what: String, sourceLocation: SourceLocation = #_sourceLocation) {
    #expect(throws: Never.self, sourceLocation: sourceLocation) {
      guard case .broken(line, _) = try vault.verifyAudit() else {
        Issue.record("\(what): \(try vault.verifyAudit())", sourceLocation: sourceLocation)
        return
      }
    }
  }
}
