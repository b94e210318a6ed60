// SPDX-License-Identifier: Apache-2.0
import Dispatch
import MobileAuth
import Secrets
import Synchronization
import Testing
import Vault
import VaultModel

/// How often the vault waits for storage: on an SD card each wait takes 10 to 100 ms.
@Suite("Waits for storage", .serialized, .timeLimit(.minutes(5))) struct SyncTests {
  private let fixture: VaultFixture
  private let vault: Vault
  private let log = Log()
  private let transaction = TransactionID("00000000-0000-4000-8000-000000000001")!

  init() throws {
    fixture = try VaultFixture(in: "/dev/shm")
    let secret = try fixture.deviceSecret()
    vault = try RecordingVFS.recording(fixture.path, in: log.append) { [fixture] in
      try Vault.open(directory: fixture.path, deviceSecret: secret)
    }
    try vault.put(server(acme))
    try vault.put(account(alice))
    // The first commit after a truncation also writes the header of the log.
    try vault.record(entry(.loggedIn, alice))
  }

  private func syncs(of body: () throws -> Void) rethrows -> Int {
    let before = log.events.count
    try body()
    return log.events.dropFirst(before).count { if case .synced = $0 { true } else { false } }
  }

  @Test("A commit waits once") func oncePerCommit() throws {
    #expect(try syncs { try vault.record(entry(.opened, alice)) } == 1)
    #expect(try syncs { try vault.journal(intent(transaction, alice, key: "k"), entry(.decided, alice)) } == 1)
    #expect(try syncs { try vault.resolveIntent(transaction, entry(.settled, alice)) } == 1)
    #expect(try syncs { _ = try vault.unresolvedIntents() } == 0)
  }

  /// From the hint to the end of a request: none before the LED lights, one before the answer is sent.
  @Test("An approval waits twice") func approval() throws {
    let beforeTheLED = syncs {
      vault.enqueue(.record(entry(.announced, alice)))
      vault.enqueue(.record(entry(.opened, alice)))
    }
    #expect(beforeTheLED == 0)
    #expect(try syncs { try vault.journal(intent(transaction, alice, key: "k"), entry(.decided, alice)) } == 1)
    #expect(syncs { vault.enqueue(.resolveIntent(transaction, entry(.settled, alice))) } == 0)
    #expect(try syncs { try vault.flush() } == 1)
    #expect(try syncs { try vault.flush() } == 0)
    #expect(try vault.auditLines(newest: 4).map(\.entry.kind) == [.announced, .opened, .decided, .settled])
  }

  private func message(_ reference: String, _ transaction: TransactionID? = nil) -> DeliveredMessage {
    DeliveredMessage(
      transaction: transaction ?? self.transaction, account: alice, reference: reference, receivedAtMilliseconds: 1,
      contents: secrets("contents"))
  }

  /// A server that pushes its requests has no list of them: the token stores each message itself.
  @Test("An approval of a push message waits as often, and its message is written beside") func pushedApproval() throws
  {
    var beforeReadable = -1
    let before = log.events.count
    let written = try syncs {
      _ = try vault.store(message("1")) { beforeReadable = log.events.count - before }
    }
    #expect(written == 1)
    #expect(beforeReadable == 0, "the LED would wait for storage")
    #expect(try syncs { try vault.journal(intent(transaction, alice, key: "k"), entry(.decided, alice)) } == 1)
    let beforeGreen = syncs {
      vault.end(transaction, as: .approved, answerKey: "k")
      vault.enqueue(.resolveIntent(transaction, entry(.settled, alice)))
    }
    #expect(try beforeGreen == 0 && vault.message(transaction)?.state == .approved)
    // A crash here sends the same answer again.
    let crashed = try fixture.vault()
    #expect(try crashed.pendingMessages().map(\.isBeingAnswered) == [true])
    #expect(try crashed.unresolvedIntents().map(\.transaction) == [transaction])
  }

  @Test("What waits for storage keeps no reader waiting") func readersDoNotWait() throws {
    let (fixture, reader) = (try VaultFixture(in: "/dev/shm"), Reader())
    let secret = try fixture.deviceSecret()
    let vault = try RecordingVFS.recording(fixture.path, in: { if case .synced = $0 { reader.read() } }) {
      try Vault.open(directory: fixture.path, deviceSecret: secret, reservesLog: true)
    }
    try vault.put(server(acme))
    try vault.put(account(alice))
    // Among these are commits that truncate the log, and some that use it from its beginning.
    for number in 0..<20 {
      reader.vault.withLock { $0 = vault }
      let transaction = TransactionID("00000000-0000-4000-8000-0000000001\(10 + number)")!
      #expect(try vault.store(message("\(number)", transaction)) {})
      reader.vault.withLock { $0 = nil }
    }
    let found = reader.found.withLock { $0 }
    #expect(found.count > 20 && found.allSatisfy { $0 != nil }, "\(found)")
  }

  /// Fails if an answer is the first commit at the beginning of the log, which also waits for its header.
  @Test("Each of many answers waits once") func oncePerAnswer() throws {
    let (log, fixture) = (Log(), try VaultFixture(in: "/dev/shm"))
    let secret = try fixture.deviceSecret()
    let vault = try RecordingVFS.recording(fixture.path, in: log.append) {
      try Vault.open(directory: fixture.path, deviceSecret: secret, reservesLog: true)
    }
    try vault.put(server(acme))
    try vault.put(account(alice))
    try vault.record(entry(.loggedIn, alice))
    for number in 1...24 {
      let before = log.events.count
      try vault.journal(intent(transaction, alice, key: "k"), entry(.decided, alice))
      let syncs = log.events.dropFirst(before).count { if case .synced = $0 { true } else { false } }
      #expect(syncs == 1, "answer \(number)")
      vault.enqueue(.resolveIntent(transaction, entry(.settled, alice)))
      try vault.flush()
    }
  }

  @Test("What another process has changed is known when it says so") func changesElsewhere() throws {
    try vault.journal(intent(transaction, alice, key: "k"), entry(.decided, alice))
    #expect(try vault.unresolvedIntents().map(\.transaction) == [transaction])
    try fixture.vault().wipe(account: alice, entry(.wiped))
    vault.noteChangesElsewhere()
    #expect(try vault.unresolvedIntents().isEmpty)
  }

  /// A decision carries such entries, and its answer waits for the commit.
  @Test("A commit reads little of a long audit chain") func readsOfALongChain() throws {
    let minute = { (number: Int) in
      AuditEntry(
        .opened, account: alice, detail: String(repeating: "x", count: 250),
        wallClockMilliseconds: 1_760_000_000_000 + Int64(number) * 60_000)
    }
    // More than SQLite caches.
    for number in 0..<9000 { vault.enqueue(.record(minute(number))) }
    try vault.flush()
    let before = RecordingVFS.reads(in: fixture.path)
    try vault.record(minute(9001))
    let reads = RecordingVFS.reads(in: fixture.path) - before
    print("a commit after 9,000 audit entries: \(reads) reads")
    #expect(reads < 300)
  }

  @Test("A decision carries what was not written before") func decisionCarriesDeferredEntries() throws {
    vault.enqueue(.record(entry(.announced, alice)))
    vault.enqueue(.record(entry(.opened, alice)))
    #expect(try syncs { try vault.journal(intent(transaction, alice, key: "k"), entry(.decided, alice)) } == 1)
    #expect(try fixture.vault().auditLines(newest: 3).map(\.entry.kind) == [.announced, .opened, .decided])
  }

  private func setPIN(limit: Int) throws {
    try vault.setPIN(of: alice, to: pin("1"), keys: secrets("keys"), limit: limit)
    // The first commit after a truncation also writes the header of the log.
    try vault.record(entry(.loggedIn, alice))
  }

  /// One more than without a PIN, because the count is durable before the PIN is verified.
  @Test("An approval with a PIN that the token verifies waits three times") func approvalWithPIN() throws {
    try setPIN(limit: 3)
    let hintToLED = syncs {
      vault.enqueue(.record(entry(.announced, alice)))
      vault.enqueue(.record(entry(.opened, alice)))
    }
    #expect(hintToLED == 0)
    #expect(try syncs { _ = try vault.unlock(alice, "1") } == 1, "from Enter to the verdict")
    #expect(
      try syncs { try vault.journal(intent(transaction, alice, key: "k"), entry(.decided, alice)) } == 1,
      "from the verdict until the answer is sent")
    vault.enqueue(.resolveIntent(transaction, entry(.settled, alice)))
    #expect(try syncs { try vault.flush() } == 1, "the end")
    let restarted = try fixture.vault()
    let clock = PatientClock(wallClockMilliseconds: 0)
    #expect(try restarted.pinStatus(of: alice, in: clock.environment)?.counts == FailureCounts(max: 3, previous: 0))
  }

  @Test("A wrong PIN waits for its count and for its audit entry") func wrongPIN() throws {
    try setPIN(limit: 3)
    #expect(try syncs { try vault.expectWrong(alice) } == 2)
  }

  /// Otherwise a crash after the verdict would wipe the account of a user who knows the PIN.
  @Test("A right PIN in the last allowed attempt is durable at once") func lastAttempt() throws {
    try setPIN(limit: 1)
    #expect(try syncs { _ = try vault.unlock(alice, "1") } == 2)
    #expect(try fixture.vault().unlock(alice, "1").text == "keys")
  }

  @Test("The end of a request that is not written yet is known") func unwrittenEndIsKnown() throws {
    try vault.journal(intent(transaction, alice, key: "k"), entry(.decided, alice))
    vault.enqueue(.resolveIntent(transaction, entry(.settled, alice)))
    #expect(try vault.unresolvedIntents().isEmpty)
    // A crash here asks the server again.
    #expect(try fixture.vault().unresolvedIntents().map(\.transaction) == [transaction])
    try vault.flush()
    #expect(try fixture.vault().unresolvedIntents().isEmpty)
  }

  @Test("Changes that could not be written are tried again, in order") func failedChangesAreTriedAgain() throws {
    vault.enqueue(.record(entry(.announced, alice, "first")))
    #expect(throws: StateStoreError.self) { try vault.wipe(account: bob, entry(.wiped)) }
    vault.enqueue(.record(entry(.opened, alice, "second")))
    try vault.flush()
    #expect(try vault.auditLines(newest: 2).map(\.entry.detail) == ["first", "second"])
  }

  /// A bound for flash wear. The kernel writes whole pages of 4 KiB, and the log's index in addition.
  @Test("An approval writes at most 10 KiB") func bytesPerApproval() throws {
    // The audit chain of a used token.
    for _ in 0..<200 { try vault.record(entry(.opened, alice, String(repeating: "x", count: 60))) }
    let bytes = try bytesWritten(by: approval)
    print("an approval: \(bytes) bytes")
    #expect((1...10_240).contains(bytes), "\(bytes) bytes")
  }

  /// Of the requests of a day, most were started by an attacker or a broken portal: 42 in an hour, fewer than the bound
  /// of lines in an hour, so that all are written. Checkpoints are included.
  @Test("A day of 50 approvals and 1,000 refused requests writes at most 8 MiB") func bytesPerDay() throws {
    let bytes = try bytesWritten {
      for number in 0..<1000 {
        if number % 20 == 0 { try approve() }
        try refusal(atMilliseconds: 1_760_000_000_123 + Int64(number) * 86_400)
      }
    }
    print("a day of 50 approvals and 1,000 refused requests: \(bytes) bytes")
    #expect((1...8 << 20).contains(bytes), "\(bytes) bytes")
  }

  /// Fails if commits change the size of the log: a file system with a journal then writes and waits more.
  @Test("The log of a process that stays has a fixed size") func reservedLog() throws {
    let fixture = try VaultFixture(in: "/dev/shm")
    let vault = try Vault.open(directory: fixture.path, deviceSecret: fixture.deviceSecret(), reservesLog: true)
    func size() throws -> Int { try contents(of: "\(fixture.path)/vault.sqlite3-wal").count }
    #expect(try size() == 65_536)
    try vault.put(server(acme))
    try vault.put(account(alice))
    // These commits replace secrets and truncate the log.
    #expect(try size() < 65_536)
    for _ in 0..<8 { try approve(in: vault) }
    for _ in 0..<40 {
      #expect(try size() == 65_536)
      try approve(in: vault)
    }
    #expect(try vault.verifyAudit() == .intact(lines: 4 * 48, first: 1))
    #expect(try fixture.vault().auditLines(newest: 1).map(\.entry.kind) == [.settled])
  }

  /// The changes of `approval`. A commit that also copies the log into the file waits more often.
  private func approve() throws { try approve(in: vault) }

  private func approve(in vault: Vault) throws {
    for kind in [AuditEntry.Kind.announced, .opened] { vault.enqueue(.record(entry(kind, alice))) }
    try vault.journal(intent(transaction, alice, key: "k"), entry(.decided, alice))
    vault.enqueue(.resolveIntent(transaction, entry(.settled, alice)))
    try vault.flush()
  }

  /// A request of a locked account: refused when it arrives, and settled when it expires.
  private func refusal(atMilliseconds time: Int64) throws {
    for (kind, detail) in [(AuditEntry.Kind.refused, "the account is locked"), (.settled, "expired")] {
      vault.enqueue(
        .record(AuditEntry(kind, account: alice, transaction: transaction, detail: detail, wallClockMilliseconds: time))
      )
      try vault.flush()
    }
  }

  private func bytesWritten(by body: () throws -> Void) rethrows -> Int {
    let before = log.events.count
    try body()
    return log.events.dropFirst(before).reduce(0) { sum, event in
      if case .wrote(_, _, let bytes) = event { sum + bytes.count } else { sum }
    }
  }
}

/// Reads on another thread while storage synchronizes, for at most 60 s.
private final class Reader: Sendable {
  let vault = Mutex<Vault?>(nil)
  /// The number of messages found each time; nil if there was no answer within 60 s.
  let found = Mutex<[Int?]>([])

  func read() {
    guard let vault = vault.withLock({ $0 }) else { return }
    let isDone = DispatchSemaphore(value: 0)
    DispatchQueue.global().async { [self] in
      let count = (try? vault.pendingMessages())?.count
      found.withLock { $0.append(count) }
      isDone.signal()
    }
    if isDone.wait(timeout: .now() + 60) == .timedOut { found.withLock { $0.append(nil) } }
  }
}
