// SPDX-License-Identifier: Apache-2.0
import Glibc
import MobileAuth
import SQLite
import Testing
import Vault
import VaultModel

/// An attacker who has the SD card, but not the device secret, edits the records of servers, accounts and answers.
@Suite("A record that was tampered with", .timeLimit(.minutes(5))) struct RecordTamperTests {
  private let fixture: VaultFixture
  private let vault: Vault
  private let carol = AccountID("carol")
  private let logout = TransactionID("22222222-2222-4333-8444-555555555555")!

  init() throws {
    fixture = try VaultFixture(in: "/dev/shm")
    vault = try fixture.vault()
    for server in [server(acme), server(umbrella, url: "https://other.example")] { try vault.put(server) }
    for account in [account(alice), account(bob, stage: .mustEnrollAgain)] { try vault.put(account) }
    try vault.journal(intent(login, alice, key: "key 1"), entry(.decided))
    try vault.note(time: 1_760_000_000, of: acme)
    for account in [alice, bob] { try vault.setPIN(of: account, to: pin("13579"), keys: secrets("signing key")) }
    for account in [alice, alice, bob] { try vault.expectWrong(account) }
  }

  @Test(
    "A count of wrong PINs, its limit and its PIN are not believed",
    arguments: [
      "UPDATE pins SET failures = 0", "UPDATE pins SET failures = failures - 1", "UPDATE pins SET max_failures = 10",
      "UPDATE pins SET failures = -100", "UPDATE pins SET mark = x''",
      "UPDATE pins SET box = (SELECT box FROM pins WHERE account = 'bob')",
      "UPDATE pins SET (failures, mark) = (SELECT failures, mark FROM pins WHERE account = 'bob')",
      "UPDATE pins SET (failures, box, mark) = (SELECT failures, box, mark FROM pins WHERE account = 'bob')",
    ])
  func countOfWrongPINsItsLimitAndItsPINAreNotBelieved(sql: String) throws {
    try fixture.raw { try $0.execute("\(sql) WHERE account = 'alice'") }
    let clock = PatientClock(wallClockMilliseconds: 0)
    expectDamage(sql) { _ = try vault.pinStatus(of: alice, in: clock.environment) }
    expectDamage(sql) { _ = try vault.unlock(alice, with: pin("13579"), in: clock.environment) }
    expectDamage(sql) {
      _ = try vault.changePIN(of: alice, from: pin("13579"), to: pin("24680"), parameters: cheap, in: clock.environment)
    }
    #expect(try vault.pinStatus(of: bob, in: clock.environment)?.counts == FailureCounts(max: 3, previous: 1))
  }

  @Test(
    "An account is not released",
    arguments: [
      (
        "boxes change places",
        """
        CREATE TABLE kept AS SELECT id, box FROM accounts;
        UPDATE accounts SET box = (SELECT box FROM kept WHERE kept.id <> accounts.id)
        """
      ),
      (
        "names change places",
        """
        PRAGMA foreign_keys = OFF; UPDATE accounts SET id = 'x' WHERE id = 'alice';
        UPDATE accounts SET id = 'alice' WHERE id = 'bob'; UPDATE accounts SET id = 'bob' WHERE id = 'x'
        """
      ),
      ("a server's box in an account", "UPDATE accounts SET box = (SELECT box FROM servers WHERE id = 'acme')"),
      ("another profile", "UPDATE accounts SET profile = 'mallory' WHERE id = 'alice'"),
      ("another stage", "UPDATE accounts SET stage = 'active' WHERE id = 'bob'"),
      ("a stage there is not", "UPDATE accounts SET stage = 'trusted' WHERE id = 'bob'"),
      ("another server", "UPDATE accounts SET server = 'umbrella' WHERE id = 'alice'"),
      ("an empty box", "UPDATE accounts SET box = x''"),
    ])
  func accountIsNotReleased(what: String, sql: String) throws {
    try fixture.raw { try $0.execute(sql) }
    let damaged = try vault.damagedAccounts()
    #expect(!damaged.isEmpty)
    for account in damaged { expectDamage(what) { _ = try vault.account(account) } }
    // The others can be used.
    let usable = try vault.accounts().map(\.id)
    #expect(Set(usable + damaged) == [alice, bob] && usable.count + damaged.count == 2, "\(what)")
    for account in damaged { try vault.wipe(damaged: account, entry(.removed)) }
    #expect(try vault.damagedAccounts().isEmpty && vault.accounts().map(\.id) == usable)
  }

  @Test("What is damaged keeps nothing else from being used, also not the accounts of other servers")
  func damageOfOneRecord() throws {
    try vault.put(account(carol, at: umbrella))
    try vault.journal(intent(logout, bob, key: "key 2"), entry(.decided))
    try fixture.raw {
      try $0.execute("UPDATE accounts SET box = zeroblob(60) WHERE id = 'alice'; UPDATE intents SET mark = x''")
    }
    #expect(try vault.accounts().map(\.id) == [bob, carol] && vault.damagedAccounts() == [alice])
    #expect(try vault.accountSummaries().map(\.id) == [alice, bob, carol])
    expectDamage("renaming") { try vault.rename(alice, to: AccountID("dave"), entry(.renamed)) }
    try fixture.raw { try $0.execute("UPDATE servers SET box = zeroblob(60) WHERE id = 'umbrella'") }
    #expect(try vault.servers().map(\.id) == [acme] && vault.damagedAccounts() == [alice, carol])
    // Nothing is replaced: the server may have pins, the account a PIN.
    expectDamage("an enrollment at a damaged server") { try vault.put(server(umbrella, url: "https://other.example")) }
    expectDamage("another enrollment") { try vault.put(account(alice)) }
    #expect(try vault.accountSummaries().map(\.stage) == [.mustEnrollAgain, .mustEnrollAgain, .mustEnrollAgain])
    for account in [alice, carol] { try vault.wipe(damaged: account, entry(.removed)) }
    #expect(throws: StateStoreError.notFound(.account(bob))) { try vault.wipe(damaged: bob, entry(.removed)) }
    // The server went with its last account.
    try vault.put(server(umbrella, url: "https://other.example"))
    #expect(try vault.servers().map(\.id) == [acme, umbrella] && vault.accounts().map(\.id) == [bob])
  }

  @Test("A name that is no text is damage of its row alone") func damagedName() throws {
    try fixture.raw {
      try $0.execute(
        """
        PRAGMA foreign_keys = OFF; UPDATE accounts SET id = CAST(x'61FF' AS TEXT) WHERE id = 'alice';
        UPDATE intents SET txn = CAST(x'FF' AS TEXT)
        """)
    }
    let vault = try fixture.vault()
    let damaged = try vault.damagedAccounts()
    #expect(damaged == [AccountID("a\u{FFFD}")])
    #expect(try vault.accounts().map(\.id) == [bob] && vault.accountSummaries().count == 2)
    #expect(try vault.unresolvedIntents().isEmpty)
    #expect(try vault.takeDamagedIntents { entry(.unconfirmed, nil, $0) }.count == 1)
    try vault.put(account(AccountID("dave")))
    try vault.wipe(damaged: damaged[0], entry(.removed))
    #expect(try vault.damagedAccounts().isEmpty)
  }

  @Test(
    "A token server is not released",
    arguments: [
      "UPDATE servers SET url = 'https://evil.example' WHERE id = 'acme'",
      "UPDATE servers SET kind = 'other' WHERE id = 'acme'",
      "UPDATE servers SET box = (SELECT box FROM servers WHERE id = 'umbrella')",
      "PRAGMA foreign_keys = OFF; UPDATE servers SET id = 'acne' WHERE id = 'acme'",
    ])
  func tokenServerIsNotReleased(sql: String) throws {
    try fixture.raw { try $0.execute(sql) }
    let readable = Set(try vault.servers().map(\.id))
    #expect(!readable.contains(acme), "\(sql)")
    #expect(try vault.damagedAccounts() == [alice, bob], "\(sql)")
  }

  @Test("No byte of a ciphertext can change") func noByteOfACiphertextCanChange() throws {
    try fixture.raw { raw in
      let ciphertext = try raw.rows("SELECT box FROM accounts WHERE id = 'alice'") { try $0.blob(0) }[0]
      for index in ciphertext.indices {
        var changed = ciphertext
        changed[index] ^= 0x80
        try raw.run("UPDATE accounts SET box = ? WHERE id = 'alice'", changed)
        expectDamage("byte \(index)") { _ = try vault.account(alice) }
      }
      for changed in [Array(ciphertext.dropLast()), Array(ciphertext.dropFirst()), ciphertext + [0]] {
        try raw.run("UPDATE accounts SET box = ? WHERE id = 'alice'", changed)
        expectDamage("\(changed.count) bytes") { _ = try vault.account(alice) }
      }
      try raw.run("UPDATE accounts SET box = ? WHERE id = 'alice'", ciphertext)
    }
    #expect(try vault.account(alice).profile == "profile of alice")
  }

  @Test(
    "An intent is not believed",
    arguments: [
      "UPDATE intents SET decision = 'accept'", "UPDATE intents SET decision = 'deny declined'",
      "UPDATE intents SET decision = 'perhaps'", "UPDATE intents SET idempotency_key = 'key 2'",
      "UPDATE intents SET account = 'bob'", "UPDATE intents SET server = 'umbrella'",
      "UPDATE intents SET txn = '99999999-2222-4333-8444-555555555555'", "UPDATE intents SET txn = 'none'",
      "UPDATE intents SET mark = zeroblob(32)", "UPDATE intents SET body = zeroblob(40)",
      // The boundary between two fields cannot be moved.
      "UPDATE intents SET account = 'alicek', idempotency_key = 'ey 1'",
    ])
  func intentIsNotBelieved(sql: String) throws {
    try vault.journal(intent(logout, alice, key: "key 3"), entry(.decided))
    let former = try vault.unresolvedIntents()
    try fixture.raw {
      // The other one stays as it is.
      try $0.execute("PRAGMA foreign_keys = OFF; \(sql) WHERE txn = '\(login.text)'")
    }
    // Another process changed the file: this one has read it before.
    let vault = try fixture.vault()
    #expect(try vault.unresolvedIntents() == former.filter { $0.transaction == logout }, "\(sql)")
    let unknown: (String) -> AuditEntry = { entry(.unconfirmed, nil, "unknown \($0)") }
    #expect(try vault.takeDamagedIntents(unknown).count == 1 && vault.takeDamagedIntents(unknown).isEmpty)
    #expect(try vault.unresolvedIntents().map(\.transaction) == [logout])
    #expect(try vault.auditLines(newest: 1).map(\.entry.kind) == [.unconfirmed])
  }

  /// Fails if who can write the file once gets attempts at the PIN back for good.
  @Test("Triggers and views in the file have no effect") func triggers() throws {
    try fixture.raw {
      try $0.execute(
        "CREATE TRIGGER t AFTER INSERT ON audit BEGIN UPDATE pins SET failures = 0; DELETE FROM intents; END")
    }
    let vault = try fixture.vault()
    try vault.journal(intent(logout, alice, key: "key 3"), entry(.decided))
    try vault.record(entry(.opened))
    #expect(try vault.unresolvedIntents().contains { $0.transaction == logout })
    #expect(throws: (any Error).self) {
      try fixture.raw { connection in
        try connection.execute("CREATE VIEW v AS SELECT * FROM pins")
        _ = try connection.rows("SELECT count(*) FROM v") { try $0.integer(0) }
      }
    }
  }

  @Test(
    "A latest known time that was changed counts as none, and is replaced",
    arguments: [
      "UPDATE server_times SET seconds = seconds + 1", "UPDATE server_times SET mark = x''",
      "UPDATE server_times SET seconds = -1",
    ])
  func latestKnownTimeIsNotBelieved(sql: String) throws {
    try fixture.raw { try $0.execute(sql) }
    #expect(try vault.latestKnownTime(of: acme) == 0)
    try vault.note(time: 2_000_000_000, of: acme)
    #expect(try vault.latestKnownTime(of: acme) == 2_000_000_000)
  }

  @Test(
    "A changed canary is as good as none", arguments: ["UPDATE canary SET box = zeroblob(48)", "DELETE FROM canary"])
  func changedCanaryIsAsGoodAsNone(sql: String) throws {
    try fixture.raw { try $0.execute(sql) }
    expectDamage(sql) { _ = try fixture.vault() }
  }

  @Test("Another device secret does not open the vault, and the message says so")
  func anotherDeviceSecretDoesNotOpenTheVaultAndTheMessageSaysSo() throws {
    let other = try VaultFixture(in: "/dev/shm")
    let fault = #expect(throws: StateStoreError.self) {
      try Vault.open(directory: fixture.path, deviceSecret: try other.deviceSecret())
    }
    #expect(fault == .corrupt(.canary))
    #expect(try vault.account(alice).profile == "profile of alice")
  }

  @Test("A file that is no database is damage, and stays as it is") func fileThatIsNoDatabaseIsDamageAndStaysAsItIs()
    throws
  {
    let other = try VaultFixture()
    let noise = [UInt8](repeating: 0x5A, count: 8192)
    let secret = try other.deviceSecret()
    try write(noise, to: other.database)
    expectDamage("noise") { _ = try Vault.open(directory: other.path, deviceSecret: secret) }
    #expect(try contents(of: other.database) == noise)
  }

  /// After a way back to the release before.
  @Test("A vault of a later format is refused and untouched", arguments: [false, true])
  func vaultOfALaterFormatIsRefusedAndUntouched(readOnly: Bool) throws {
    let newest = try Int(fixture.raw { try $0.rows("PRAGMA user_version") { try $0.integer(0) } }[0])
    try fixture.raw { try $0.execute("PRAGMA user_version = \(newest + 1)") }
    let before = try contents(of: fixture.database)
    let fault = #expect(throws: StateStoreError.newerFormat(newest + 1, known: newest)) {
      try Vault.open(directory: fixture.path, deviceSecret: try fixture.deviceSecret(), readOnly: readOnly)
    }
    #expect(
      "\(fault!)".hasPrefix("the vault has format \(newest + 1), and this version reads formats up to \(newest): "))
    #expect(try contents(of: fixture.database) == before)
  }

  private func expectDamage(
    _ what: String, sourceLocation: SourceLocation = #_sourceLocation, _ body: () throws -> Void
  ) {
    let fault = #expect(throws: StateStoreError.self, "\(what)", sourceLocation: sourceLocation, performing: body)
    if let fault, case .corrupt = fault { return }
    Issue.record("\(what): \(String(describing: fault))", sourceLocation: sourceLocation)
  }
}
