// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import MobileAuth
import Secrets
import ServerBackends
import Testing

@Suite("Operations on accounts", .timeLimit(.minutes(1))) struct AccountOperationTests {
  private let fixture: OperationsFixture
  private var operations: AccountOperations { fixture.operations }

  init() throws { fixture = try OperationsFixture() }

  private func lock(_ name: String) throws {
    try fixture.account(name) { $0.lock = UserLock(policy: "p") }
  }

  // MARK: Names

  @Test("Without a name, the only active account is meant") func onlyAccount() throws {
    #expect(throws: AccountError.nameOne(of: [])) { try operations.activeAccount(nil) }
    try fixture.account("ann")
    try fixture.account("bob", stage: .enrolling)
    #expect(try operations.activeAccount(nil).id == AccountID("ann"))
    #expect(throws: AccountError.notActive("bob")) { try operations.activeAccount("bob") }
    try fixture.account("eve")
    #expect(throws: AccountError.nameOne(of: [AccountID("ann"), AccountID("eve")])) {
      try operations.activeAccount(nil)
    }
    #expect(try operations.activeAccount("eve").id == AccountID("eve"))
  }

  @Test("An account is renamed, and a locked one is not") func rename() throws {
    try fixture.account("ann")
    try operations.rename("ann", to: "anna")
    #expect(try fixture.store.accounts().map(\.id.text) == ["anna"])
    #expect(fixture.store.audit.map(\.kind) == [.renamed] && fixture.store.audit.map(\.detail) == ["was ann"])
    #expect(throws: StateStoreError.notFound(.account(AccountID("ann")))) { try operations.rename("ann", to: "x") }
    try lock("bob")
    #expect(throws: LockError.locked(AccountID("bob"), .manual(policy: "p"))) { try operations.rename("bob", to: "x") }
    #expect(try fixture.store.accounts().map(\.id.text) == ["anna", "bob"])
  }

  /// Fails if only the command checks the name.
  @Test(
    "An account is not given an invalid name",
    arguments: ["", "an na", "a\u{1B}[2J", String(repeating: "a", count: 65)])
  func invalidName(name: String) throws {
    try fixture.account("ann")
    #expect(throws: AccountError.invalidName) { try operations.rename("ann", to: name) }
    #expect(try fixture.store.accounts().map(\.id.text) == ["ann"] && fixture.store.audit.isEmpty)
  }

  @Test("An account that has only its profile as a name is named after the user") func namedAfterUser() throws {
    let account = try fixture.account("P-bob") { record in
      record.profile = "P-bob"
      record.displayName = "bob"
    }
    #expect(try operations.namedAfterUser(account).id.text == "bob@able.example")
    #expect(try fixture.store.accounts().map(\.id.text) == ["bob@able.example"])
    let chosen = try fixture.account("ann") { $0.displayName = "ann" }
    #expect(try operations.namedAfterUser(chosen).id == chosen.id)
  }

  @Test("The account with one-time passwords is chosen, unless it is locked") func oneTimePasswords() throws {
    try fixture.account("ann")
    #expect(throws: AccountError.noOneTimePasswords) { try operations.accountWithOneTimePasswords(nil) }
    #expect(throws: AccountError.withoutOneTimePasswords("ann")) { try operations.accountWithOneTimePasswords("ann") }
    fixture.store.giveOneTimePasswords(to: AccountID("ann"))
    #expect(try operations.accountWithOneTimePasswords(nil).id.text == "ann")
    try lock("bob")
    fixture.store.giveOneTimePasswords(to: AccountID("bob"))
    #expect(throws: AccountError.nameOne(of: [AccountID("ann"), AccountID("bob")])) {
      try operations.accountWithOneTimePasswords(nil)
    }
    #expect(throws: LockError.self) { try operations.accountWithOneTimePasswords("bob") }
  }

  // MARK: Messages

  private func transaction(_ number: Int) throws -> TransactionID {
    try #require(TransactionID(numberedUUID(number)))
  }

  private func message(_ number: Int, for account: String, at milliseconds: Int64) throws -> DeliveredMessage {
    DeliveredMessage(
      transaction: try transaction(number), account: AccountID(account), reference: "R\(number)",
      receivedAtMilliseconds: milliseconds, contents: SecretBytes(copying: [1]))
  }

  @Test("The history has the messages of all accounts, the newest first, at the time of the environment")
  func history() throws {
    let now = fixture.environment.wallClockMilliseconds
    try fixture.account("ann")
    try fixture.account("bob")
    try fixture.account("eve", at: OperationsFixture.plain)
    try fixture.store.add([
      message(1, for: "ann", at: now - 61_000), message(2, for: "bob", at: now - 2),
      message(3, for: "ann", at: now - 1),
      message(4, for: "eve", at: now),
    ])
    #expect(try operations.history(of: nil).map(\.transaction) == [3, 2, 1].map(transaction))
    #expect(try operations.history(of: "ann").map(\.state) == [.pending, .expired])
    #expect(throws: AccountError.unknownAmong("eve", kinds: "Able")) { try operations.history(of: "eve") }
  }

  @Test("A mailbox is requested, until the server confirms it") func mailbox() throws {
    try fixture.account("ann") { $0.delivery = DeliveryAddress("old") }
    #expect(try operations.deliveryAddress(of: "ann") == DeliveryAddress("old"))
    #expect(try operations.request(mailbox: "new", for: "ann") == DeliveryAddress("old", wanted: "new"))
    #expect(try operations.deliveryAddress(of: "ann") == DeliveryAddress("old", wanted: "new"))
    #expect(try operations.request(mailbox: "old", for: "ann") == DeliveryAddress("old"))
    #expect(throws: BackendError.self) { try operations.request(mailbox: "taken", for: "ann") }
    try fixture.account("eve", at: OperationsFixture.plain) { $0.delivery = DeliveryAddress("x") }
    #expect(throws: AccountError.unknownAmong("eve", kinds: "Able")) { try operations.deliveryAddress(of: "eve") }
    try fixture.account("bob") { record in
      record.delivery = DeliveryAddress("old")
      record.lock = UserLock(policy: "p")
    }
    #expect(throws: LockError.self) { try operations.request(mailbox: "new", for: "bob") }
  }
}
