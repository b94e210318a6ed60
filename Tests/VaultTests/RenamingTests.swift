// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import MobileAuth
import Secrets
import Testing
import Vault
import VaultModel

@Suite("Renaming an account", .timeLimit(.minutes(5))) struct RenamingTests {
  private let fixture: VaultFixture
  private let vault: Vault
  private let entry = AuditEntry(
    .renamed, account: AccountID("new"), detail: "was old", wallClockMilliseconds: 1_760_000_000_123)

  init() throws {
    fixture = try VaultFixture()
    vault = try fixture.vault()
    try vault.put(
      TokenServerRecord(id: TokenServerID("server"), kind: "reference", url: "https://server", secrets: secrets("pins"))
    )
    for name in ["old", "other"] {
      try vault.put(
        AccountRecord(
          id: AccountID(name), server: TokenServerID("server"), profile: name, stage: .active,
          secrets: secrets("\(name)'s")))
    }
  }

  @Test("Keys, PIN, wrong attempts and answers under way go over") func keysPINWrongAttemptsAndAnswersUnderWayGoOver()
    throws
  {
    try vault.setPIN(of: AccountID("old"), to: pin("135790"), keys: secrets("encrypted with the PIN"))
    try vault.expectWrong(AccountID("old"))
    let intent = AnswerIntent(
      transaction: try #require(TransactionID("00000000-0000-0000-0000-000000000001")), server: TokenServerID("server"),
      account: AccountID("old"), idempotencyKey: "key", decision: .deny(.notMe), body: [1, 2, 3])
    try vault.journal(intent, AuditEntry(.decided, wallClockMilliseconds: 1_760_000_000_123))
    try vault.rename(AccountID("old"), to: AccountID("new"), entry)

    // Another process reads the same state.
    let vault = try fixture.vault()
    #expect(try vault.accounts().map(\.id) == ["new", "other"].map { AccountID($0) })
    let renamed = try vault.account(AccountID("new"))
    #expect(bytes(renamed.secrets) == Array("old's".utf8) && renamed.profile == "old" && renamed.stage == .active)
    var expected = intent
    expected.account = AccountID("new")
    #expect(try vault.unresolvedIntents() == [expected])
    #expect(
      try vault.pinStatus(of: AccountID("new"), in: PatientClock(wallClockMilliseconds: 0).environment)?.counts.previous
        == 1)
    #expect(try vault.pinStatus(of: AccountID("old"), in: PatientClock(wallClockMilliseconds: 0).environment) == nil)
    #expect(try vault.unlock(AccountID("new"), "135790").text == "encrypted with the PIN")
    #expect(bytes(try vault.account(AccountID("other")).secrets) == Array("other's".utf8))
    guard case .intact = try vault.verifyAudit() else {
      Issue.record("the audit chain is broken")
      return
    }
  }

  /// Fails if names are compared byte by byte: reading the one-time passwords then ended the process.
  @Test("A name that differs from another one only in its Unicode form is taken") func unicodeForms() throws {
    let (composed, decomposed) = (AccountID("\u{E9}"), AccountID("e\u{301}"))
    try vault.rename(AccountID("old"), to: composed, entry)
    #expect(throws: StateStoreError.conflict(.account(decomposed), .nameTaken)) {
      try vault.rename(AccountID("other"), to: decomposed, entry)
    }
    #expect(throws: StateStoreError.conflict(.account(decomposed), .nameTaken)) {
      try vault.put(
        AccountRecord(
          id: decomposed, server: TokenServerID("server"), profile: "p", stage: .active, secrets: secrets("s")))
    }
    #expect(try vault.accounts().map(\.id) == [AccountID("other"), composed])
  }

  @Test("A name that is taken, or an account that is not there, changes nothing")
  func nameThatIsTakenOrAnAccountThatIsNotThereChangesNothing() throws {
    #expect(throws: StateStoreError.conflict(.account(AccountID("other")), .nameTaken)) {
      try vault.rename(AccountID("old"), to: AccountID("other"), entry)
    }
    #expect(throws: StateStoreError.notFound(.account(AccountID("nobody")))) {
      try vault.rename(AccountID("nobody"), to: AccountID("new"), entry)
    }
    #expect(try vault.accounts().map(\.id) == ["old", "other"].map { AccountID($0) })
    #expect(bytes(try vault.account(AccountID("other")).secrets) == Array("other's".utf8))
  }
}
