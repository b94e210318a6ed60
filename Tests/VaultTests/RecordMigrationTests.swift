// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import MobileAuth
import SQLite
import Secrets
import Testing

@testable import Vault

/// A vault of format 7: its boxes contain only what the adapters encoded.
@Suite("A vault with former records", .timeLimit(.minutes(5))) struct RecordMigrationTests {
  private let fixture: VaultFixture
  private let secret: DeviceSecret

  init() throws {
    fixture = try VaultFixture(in: "/dev/shm")
    secret = try fixture.deviceSecret()
    let keys = VaultKeys(of: secret)
    let connection = try Connection(path: fixture.database)
    try connection.migrate(Array(Schema.steps(keys).prefix(7)))
    for id in [acme, umbrella] {
      let associated = RecordFields.associatedData(ofServer: id, kind: "kind of \(id)", url: "https://\(id)")
      try connection.run(
        "INSERT INTO servers VALUES (?, ?, ?, ?)", id.text, "kind of \(id)", "https://\(id)",
        try keys.seal(secrets("server key"), at: associated))
    }
    for (id, server) in [(alice, acme), (bob, umbrella)] {
      let associated = RecordFields.associatedData(of: id, server, "profile", "active")
      try connection.run(
        "INSERT INTO accounts VALUES (?, ?, ?, ?, ?)", id.text, server.text, "profile", "active",
        try keys.seal(secrets("former \(id)"), at: associated))
    }
  }

  /// Decodes accounts at acme only.
  @Sendable private static func upgrade(kind: String, former: AccountRecord) throws -> AccountRecord {
    guard kind == "kind of acme" else { throw StateStoreError.corrupt(.kind(kind, former.server)) }
    var account = former.with(secrets("credentials from \(String(decoding: bytes(former.secrets), as: UTF8.self))"))
    account.pin = PINMetadata(.server, length: 5)
    account.lock = UserLock(policy: nil)
    account.policies = "{}"
    account.delivery = DeliveryAddress("mailbox", wanted: "new")
    return account
  }

  private func open(_ upgrade: AccountUpgrade?) throws -> Vault {
    try Vault.open(directory: fixture.path, deviceSecret: secret, upgrade: upgrade)
  }

  private var format: Int64 {
    get throws { try fixture.raw { try $0.rows("PRAGMA user_version") { try $0.integer(0) } }[0] }
  }

  @Test("Is migrated when it is opened, and stays as it was then") func migrated() throws {
    for upgrade in [Self.upgrade, nil] as [AccountUpgrade?] {
      let vault = try open(upgrade)
      let account = try vault.account(alice)
      #expect(account.pin == PINMetadata(.server, length: 5) && account.lock == UserLock(policy: nil))
      #expect(account.policies == "{}" && account.delivery == DeliveryAddress("mailbox", wanted: "new"))
      #expect(SecretBytes.constantTimeEqual(account.secrets, secrets("credentials from former alice")))
      #expect(account.profile == "profile" && account.stage == .active)
      #expect(try vault.servers().allSatisfy { SecretBytes.constantTimeEqual($0.secrets, secrets("server key")) })
      #expect(try vault.account(alice).enrollment == account.enrollment)
    }
  }

  @Test("Has an account that cannot be decoded: it is damage, and the others are usable") func undecodable() throws {
    let vault = try open(Self.upgrade)
    #expect(throws: StateStoreError.corrupt(.account(bob))) { try vault.account(bob) }
    #expect(try vault.account(alice).id == alice)
    try vault.wipe(account: bob, entry(.removed))
    #expect(try vault.accounts().map(\.id) == [alice])
  }

  /// The first release has this format. With another one, `former` stays that of the release before, and the writers
  /// follow `VaultFormats`.
  @Test("Has at last the newest format, 8") func newestFormat() throws {
    #expect(Schema.newestFormat == Schema.steps(VaultKeys(of: secret)).count && Schema.newestFormat == 8)
    #expect(VaultFormats.current.former == 8 && VaultFormats.current.newest == 8)
    _ = try open(Self.upgrade)
    #expect(try format == 8)
  }

  /// Fails without the check of the canary: the format would be raised, and no record migrated.
  @Test("Is not changed with another device secret") func otherDeviceSecret() throws {
    let other = try VaultFixture(in: "/dev/shm").deviceSecret()
    #expect(throws: StateStoreError.corrupt(.canary)) {
      try Vault.open(directory: fixture.path, deviceSecret: other, upgrade: Self.upgrade)
    }
    #expect(try format == 7)
    #expect(try open(Self.upgrade).account(alice).id == alice)
  }

  @Test("Is not changed by a program that cannot decode its accounts") func noUpgrade() throws {
    #expect(throws: StateStoreError.self) { try open(nil) }
    #expect(try format == 7)
  }

  /// The kind is in plaintext; only the server's box authenticates it.
  @Test("Is not decoded as another kind because its storage was edited") func editedKind() throws {
    try fixture.raw { try $0.execute("UPDATE servers SET kind = 'kind of acme' WHERE id = 'umbrella'") }
    _ = try open(Self.upgrade)
    try fixture.raw { try $0.execute("UPDATE servers SET kind = 'kind of umbrella' WHERE id = 'umbrella'") }
    #expect(throws: StateStoreError.corrupt(.account(bob))) { try open(nil).account(bob) }
  }

  @Test("Does not accept a former box after the migration") func formerBox() throws {
    let former = try fixture.raw { try $0.rows("SELECT box FROM accounts WHERE id = 'alice'") { try $0.blob(0) }[0] }
    let vault = try open(Self.upgrade)
    _ = try fixture.raw { try $0.run("UPDATE accounts SET box = ? WHERE id = 'alice'", former) }
    #expect(throws: StateStoreError.corrupt(.account(alice))) { try vault.account(alice) }
  }
}

/// The fields of an account, without the adapter's credentials.
@Suite("The record of an account", .timeLimit(.minutes(5))) struct AccountFieldsTests {
  private let fixture: VaultFixture
  private let vault: Vault

  init() throws {
    fixture = try VaultFixture(in: "/dev/shm")
    vault = try fixture.vault()
    try vault.put(server(acme))
  }

  private static let changes: [@Sendable (inout AccountRecord) -> Void] = [
    { $0.pin = PINMetadata(.server, length: 5) }, { $0.pin = PINMetadata(.token, length: 32) },
    { $0.lock = UserLock(policy: nil) }, { $0.lock = UserLock(policy: "ä") }, { $0.policies = "" },
    { $0.policies = #"{"x":{}}"# }, { $0.delivery = DeliveryAddress("m") },
    { $0.delivery = DeliveryAddress("m", wanted: "") }, { $0.enrollment = EnrollmentID("e") },
    { $0.displayName = "Ann" }, { $0.allowedOrigins = ["https://shop.example"] },
    { $0.standIns = [StandIn("finger", .finger, registration: [])] },
    {
      $0.standIns = [StandIn("a", .badge(key: [4, 1]), registration: [7]), StandIn("b", .finger, registration: [8])]
    },
    { $0.standIns = [StandIn("a", .securityKey(key: [4, 1]), registration: [7])] },
  ]

  @Test("Is read as it was written, and a change of any field is a change", arguments: changes.indices)
  func roundTrip(index: Int) throws {
    let plain = account(alice)
    try vault.put(plain)
    var changed = plain
    Self.changes[index](&changed)
    #expect(!plain.isSame(as: changed))
    #expect(try vault.change(plain, .put(changed, nil)) && vault.account(alice).isSame(as: changed))
    #expect(try !vault.change(plain, .put(plain, nil)))
    #expect(try vault.account(alice).lock == changed.lock && vault.account(alice).policies == changed.policies)
  }

  /// A field that is not understood must not count as missing: that would remove a lock.
  @Test(
    "With a field that is not understood is damage",
    arguments: [
      (RecordFields.Tag.lock, [0xFF]), (.policies, [0xFF]), (.pinLength, [0x34]), (.pinVerifier, [0x78]),
      (.standIns, [0, 0, 0, 1]),
      (.standIns, [0, 0, 0, 1, 0]),
    ])
  func malformedField(tag: RecordFields.Tag, value: [UInt8]) throws {
    var fields = RecordFields.make(EnrollmentID(), secrets("key"))
    fields[tag] = SecretBytes(copying: value)
    #expect(throws: StateStoreError.self) {
      try AccountRecord(id: alice, server: acme, profile: "p", stage: .active, encodedFields: fields.encoded)
    }
  }

  @Test("Has the PIN that the vault has, and none without keys") func pinInTheRecord() throws {
    try vault.put(account(alice))
    try vault.setPIN(of: alice, to: pin("135790"), keys: secrets("key"))
    #expect(try vault.account(alice).pin == PINMetadata(.token, length: 6))
    try vault.dropKeys(of: alice, entry(.disenrolled))
    #expect(try vault.account(alice).pin == nil && vault.account(alice).lock == nil)
  }
}
