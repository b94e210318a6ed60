// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import Glibc
import MobileAuth
import SQLite
import Secrets
import Testing

@testable import Vault

@Suite("Stored push messages", .timeLimit(.minutes(5))) struct MessageTests {
  private let fixture: VaultFixture
  private let vault: Vault

  init() throws {
    fixture = try VaultFixture(in: "/dev/shm")
    vault = try fixture.vault()
    try vault.put(TokenServerRecord(id: acme, kind: "pingam", url: "https://am", secrets: secrets("pins")))
    for account in [alice, bob] {
      try vault.put(
        AccountRecord(id: account, server: acme, profile: "p", stage: .active, secrets: secrets("keys")))
    }
  }

  private func transaction(_ number: Int) throws -> TransactionID {
    let digits = String(number)
    let padded = String(repeating: "0", count: 12 - digits.count) + digits
    return try #require(TransactionID("00000000-0000-8000-8000-\(padded)"))
  }

  private func message(_ number: Int, for account: AccountID = alice, reference: String? = nil) throws
    -> DeliveredMessage
  {
    DeliveredMessage(
      transaction: try transaction(number), account: account, reference: reference ?? "message \(number)",
      receivedAtMilliseconds: 1_760_000_000_000 + Int64(number), contents: secrets("contents of \(number)"))
  }

  @Test("Keeps what another process then finds") func keepsWhatAnotherProcessThenFinds() throws {
    #expect(try vault.store(message(1)))
    let found = try #require(try fixture.vault().message(transaction(1)))
    #expect(found.account == alice && found.reference == "message 1" && found.state == .pending)
    #expect(found.receivedAtMilliseconds == 1_760_000_000_001 && !found.isBeingAnswered && found.answerKey == nil)
    #expect(bytes(found.contents) == Array("contents of 1".utf8))
    #expect(try vault.message(transaction(2)) == nil)
  }

  @Test("Keeps one of each transaction and of each name") func keepsOneOfEachTransactionAndOfEachName() throws {
    #expect(try vault.store(message(1)))
    #expect(try vault.store(message(1, reference: "another")) == false)
    #expect(try vault.store(message(2, for: bob, reference: "message 1")) == false)
    try vault.end(transaction(1), as: .approved, answerKey: "k")
    #expect(try vault.message(transaction(1))?.state == .approved)
    #expect(try vault.store(message(1)) == false)
    #expect(try vault.message(transaction(1))?.state == .approved)
  }

  @Test("Ends a message once") func endsAMessageOnce() throws {
    _ = try vault.store(message(1))
    try vault.end(transaction(1), as: .denied, answerKey: "k1")
    try vault.end(transaction(1), as: .approved, answerKey: "k2")
    try vault.end(transaction(9), as: .failed, answerKey: nil)
    // Before and after it is written.
    for isWritten in [false, true] {
      let found = try #require(try (isWritten ? fixture.vault() : vault).message(transaction(1)))
      #expect(found.state == .denied && found.answerKey == "k1")
      #expect(try vault.pendingMessages().isEmpty)
      #expect(try vault.messages(of: alice).map(\.state) == [.denied])
      #expect(try fixture.vault().pendingMessages().isEmpty == isWritten)
      try vault.flush()
    }
  }

  @Test("Is readable while it is written") func isReadableWhileItIsWritten() throws {
    _ = try vault.store(message(1))
    var found: [String] = []
    let isNew = try vault.store(message(2)) {
      found = (try? vault.pendingMessages().map(\.reference)) ?? []
      // A second channel delivers it.
      #expect((try? vault.store(message(2))) == false)
      // The call above has written it.
      #expect((try? fixture.vault().pendingMessages().count) == 2)
    }
    #expect(isNew && found == ["message 1", "message 2"])
    #expect(try vault.store(message(2)) { Issue.record("it is known") } == false)
    #expect(try vault.messages(of: alice).map(\.reference) == ["message 2", "message 1"])
  }

  /// The vault runs no trigger.
  private static let refusesInserts = "ALTER TABLE messages ADD COLUMN full INTEGER CHECK (full IS NOT NULL)"

  @Test("That could not be written stays readable, is not taken for stored, and is written when that is possible")
  func thatCouldNotBeWrittenStaysReadable() throws {
    try fixture.raw { try $0.execute(Self.refusesInserts) }
    var announcements = 0
    // Delivered again and again.
    for _ in 1...3 {
      #expect(throws: StateStoreError.self) { try vault.store(message(1)) { announcements += 1 } }
      #expect(try vault.pendingMessages().map(\.reference) == ["message 1"])
    }
    #expect(announcements == 1)
    try fixture.raw { try $0.execute("ALTER TABLE messages DROP COLUMN full") }
    #expect(try vault.store(message(1)) == false)
    #expect(try fixture.vault().pendingMessages().map(\.reference) == ["message 1"] && vault.queueLength == 0)
  }

  @Test("Of those that cannot be written, a limited number waits") func aLimitedNumberWaits() throws {
    try fixture.raw { try $0.execute(Self.refusesInserts) }
    for number in 1...PushMessageLimits.perAccount + 5 {
      #expect(throws: StateStoreError.self) { try vault.store(message(number)) }
    }
    #expect(try vault.pendingMessages().count == PushMessageLimits.perAccount)
    #expect(throws: StateStoreError.self) { try vault.store(message(1000, for: bob)) }
    #expect(try vault.pendingMessages().last?.account == bob)
  }

  /// Damages a page of the file, after its log was copied into it.
  private func damageIndex() throws {
    let pages = try fixture.raw { raw -> [Int64] in
      _ = try raw.truncateLog()
      return try raw.rows("SELECT rootpage FROM sqlite_master WHERE name = 'messages_of_account'") { try $0.integer(0) }
    }
    let offset = (try #require(pages.first) - 1) * 512
    let descriptor = open(fixture.database, O_WRONLY)
    defer { close(descriptor) }
    let written = pwrite(descriptor, [UInt8](repeating: 0xFF, count: 512), 512, off_t(offset))
    #expect(written == 512)
  }

  private func useUpNumbers() throws {
    try fixture.raw { try $0.execute("INSERT INTO sqlite_sequence VALUES ('messages', 9223372036854775807)") }
  }

  @Test("That can never be written keeps no other change from being written", arguments: [false, true])
  func thatCanNeverBeWrittenKeepsNoOtherChangeFromBeingWritten(isPageDamaged: Bool) throws {
    if isPageDamaged { try damageIndex() } else { try useUpNumbers() }
    let vault = try fixture.vault()
    for _ in 1...2 { #expect(throws: StateStoreError.self) { try vault.store(message(1)) } }
    let intent = AnswerIntent(
      transaction: try transaction(2), server: acme, account: bob, idempotencyKey: "k", decision: .accept)
    try vault.journal(intent, AuditEntry(.decided, account: bob, wallClockMilliseconds: 0))
    vault.enqueue(.record(AuditEntry(.loggedIn, wallClockMilliseconds: 0)))
    try vault.flush()
    try vault.record(AuditEntry(.loggedOut, wallClockMilliseconds: 0))
    let reopened = try fixture.vault()
    #expect(try reopened.unresolvedIntents() == [intent])
    #expect(try reopened.auditLines(newest: 3).map(\.entry.kind) == [.decided, .loggedIn, .loggedOut])
    // The request can be answered.
    #expect(try vault.pendingMessages().map(\.reference) == ["message 1"] && vault.queueLength == 1)
  }

  @Test("That cannot be written waits with its end, and those of other accounts are written")
  func thatCannotBeWrittenWaitsWithItsEnd() throws {
    try fixture.raw { try $0.execute("ALTER TABLE messages ADD COLUMN full INTEGER CHECK (account <> 'alice')") }
    #expect(throws: StateStoreError.self) { try vault.store(message(1)) }
    try vault.end(transaction(1), as: .denied, answerKey: "k")
    #expect(try vault.store(message(2, for: bob)))
    #expect(try fixture.vault().pendingMessages().map(\.reference) == ["message 2"])
    #expect(try vault.message(transaction(1))?.state == .denied && vault.queueLength == 2)
    try fixture.raw { try $0.execute("ALTER TABLE messages DROP COLUMN full") }
    try vault.flush()
    #expect(try fixture.vault().message(transaction(1))?.state == .denied && vault.queueLength == 0)
  }

  /// Otherwise its request could be answered a second time.
  @Test("Has ended although its end cannot be written, which keeps no other change from being written")
  func thatHasEndedIsNotPending() throws {
    #expect(try vault.store(message(1)))
    try fixture.raw { try $0.execute("ALTER TABLE messages ADD COLUMN full INTEGER CHECK (state = 'pending')") }
    try vault.end(transaction(1), as: .denied, answerKey: "k")
    try vault.record(AuditEntry(.loggedIn, wallClockMilliseconds: 0))
    #expect(try fixture.vault().auditLines(newest: 1).map(\.entry.kind) == [.loggedIn])
    #expect(try vault.pendingMessages().isEmpty && vault.queueLength == 1)
    try fixture.raw { try $0.execute("ALTER TABLE messages DROP COLUMN full") }
    try vault.flush()
    #expect(try fixture.vault().message(transaction(1))?.state == .denied && vault.queueLength == 0)
  }

  @Test("Is not taken for stored if its account is removed while it is written")
  func isNotTakenForStoredWithoutItsAccount() throws {
    #expect(throws: StateStoreError.notFound(.account(alice))) {
      try vault.store(message(1)) {
        try? fixture.vault().rename(alice, to: AccountID("carol"), AuditEntry(.renamed, wallClockMilliseconds: 0))
      }
    }
    #expect(try vault.pendingMessages().isEmpty && vault.queueLength == 0)
  }

  @Test(
    "That was changed in storage keeps no other change from being written",
    arguments: ["box = zeroblob(40)", "reference = CAST(x'FF' AS TEXT)", "state = 'other'"])
  func thatWasChangedInStorageKeepsNoOtherChangeFromBeingWritten(change: String) throws {
    _ = try vault.store(message(1))
    try fixture.raw { try $0.execute("UPDATE messages SET \(change)") }
    try vault.end(transaction(1), as: .approved, answerKey: "k")
    try vault.record(AuditEntry(.loggedIn, wallClockMilliseconds: 0))
    #expect(try vault.auditLines(newest: 1).map(\.entry.kind) == [.loggedIn])
    #expect(throws: StateStoreError.self) { try vault.message(transaction(1)) }
  }

  @Test("Knows which are being answered") func knowsWhichAreBeingAnswered() throws {
    for number in 1...2 { _ = try vault.store(message(number)) }
    let intent = AnswerIntent(
      transaction: try transaction(2), server: acme, account: alice, idempotencyKey: "k", decision: .accept)
    try vault.journal(intent, AuditEntry(.decided, wallClockMilliseconds: 0))
    #expect(try vault.pendingMessages().map(\.isBeingAnswered) == [false, true])
    try vault.resolveIntent(transaction(2), AuditEntry(.settled, wallClockMilliseconds: 0))
    #expect(try vault.pendingMessages().map(\.isBeingAnswered) == [false, false])
  }

  @Test("Keeps a limited number for each account, and drops the oldest")
  func keepsALimitedNumberForEachAccountAndDropsTheOldest() throws {
    _ = try vault.store(message(1000, for: bob))
    for number in 1...PushMessageLimits.perAccount + 2 { _ = try vault.store(message(number)) }
    let kept = try vault.pendingMessages()
    #expect(kept.filter { $0.account == alice }.map(\.reference) == (3...34).map { "message \($0)" })
    #expect(kept.filter { $0.account == bob }.count == 1)
  }

  @Test("Keeps what is being answered, however many come after it")
  func keepsWhatIsBeingAnsweredHoweverManyComeAfterIt() throws {
    _ = try vault.store(message(1))
    let intent = AnswerIntent(
      transaction: try transaction(1), server: acme, account: alice, idempotencyKey: "k", decision: .accept)
    try vault.journal(intent, AuditEntry(.decided, wallClockMilliseconds: 0))
    for number in 2...PushMessageLimits.perAccount + 2 { _ = try vault.store(message(number)) }
    let kept = try vault.pendingMessages()
    #expect(kept.map(\.reference) == ([1] + (3...34)).map { "message \($0)" })
    #expect(kept.first?.isBeingAnswered == true)
    // The message is also kept under the limit of all accounts.
    for account in 0..<16 {
      let id = AccountID("account \(account)")
      try vault.put(AccountRecord(id: id, server: acme, profile: "p", stage: .active, secrets: secrets("keys")))
      for number in 0..<32 { _ = try vault.store(message(1000 + account * 100 + number, for: id)) }
    }
    #expect(try vault.pendingMessages().filter { $0.account == alice }.map(\.reference) == ["message 1"])
    try vault.resolveIntent(transaction(1), AuditEntry(.settled, wallClockMilliseconds: 0))
    _ = try vault.store(message(9000, for: AccountID("account 0")))
    #expect(try vault.message(transaction(1)) == nil)
  }

  @Test("Keeps a limited total number") func keepsALimitedTotalNumber() throws {
    for account in 0..<17 {
      let id = AccountID("account \(account)")
      try vault.put(AccountRecord(id: id, server: acme, profile: "p", stage: .active, secrets: secrets("keys")))
      for number in 0..<32 { _ = try vault.store(message(account * 100 + number, for: id)) }
    }
    let kept = try vault.pendingMessages()
    #expect(kept.count == PushMessageLimits.total && kept.first?.account == AccountID("account 1"))
  }

  @Test("Follows its account: renamed, without keys, or removed") func followsItsAccountRenamedWithoutKeysOrRemoved()
    throws
  {
    _ = try vault.store(message(1))
    _ = try vault.store(message(2, for: bob))
    let carol = AccountID("carol")
    try vault.rename(alice, to: carol, AuditEntry(.renamed, wallClockMilliseconds: 0))
    #expect(try vault.message(transaction(1))?.account == carol)
    try vault.dropKeys(of: carol, AuditEntry(.disenrolled, wallClockMilliseconds: 0))
    #expect(try vault.message(transaction(1)) == nil)
    try vault.wipe(account: bob, AuditEntry(.wiped, wallClockMilliseconds: 0))
    #expect(try vault.message(transaction(2)) == nil)
    #expect(throws: StateStoreError.notFound(.account(bob))) { try vault.store(message(3, for: bob)) }
  }

  @Test(
    "Detects changes in storage",
    arguments: [
      "UPDATE messages SET state = 'pending'", "UPDATE messages SET account = 'bob'",
      "UPDATE messages SET reference = 'x'", "UPDATE messages SET received = received + 1",
      "UPDATE messages SET answer_key = 'x'", "UPDATE messages SET box = zeroblob(40)",
    ])
  func detectsChangesInStorage(statement: String) throws {
    _ = try vault.store(message(1))
    try vault.end(transaction(1), as: .approved, answerKey: "k")
    try vault.flush()
    try fixture.raw { try $0.execute(statement) }
    #expect(throws: StateStoreError.self) { try vault.message(transaction(1)) }
  }

  @Test("Reveals no contents of a message to an attacker with the SD card")
  func revealsNoContentsOfAMessageToAnAttackerWithTheSDCard() throws {
    _ = try vault.store(message(1))
    let card = try contents(of: fixture.database)
    #expect(!card.indices.contains { card[$0...].starts(with: Array("contents of".utf8)) })
  }
}

extension Vault {
  fileprivate func store(_ message: DeliveredMessage) throws(StateStoreError) -> Bool {
    try store(message, whenReadable: {})
  }
}
