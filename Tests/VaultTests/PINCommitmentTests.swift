// SPDX-License-Identifier: Apache-2.0
import Cryptography
import MobileAuth
import PINProtection
import SQLite
import Secrets
import Testing
import VaultModel

@testable import Vault

/// An attacker who can start the token's programs with another state directory has rows of a second vault with the same
/// device secret, without having read the secret.
@Suite("A PIN of another vault with the same secret", .timeLimit(.minutes(5))) struct PINCommitmentTests {
  private let fixture: VaultFixture
  private let vault: Vault
  private let other: VaultFixture

  init() throws {
    fixture = try VaultFixture(in: "/dev/shm")
    vault = try fixture.vault()
    other = try VaultFixture(in: "/dev/shm")
    let second = try Vault.open(directory: other.path, deviceSecret: try fixture.deviceSecret())
    for vault in [vault, second] {
      try vault.put(server(acme))
      try vault.put(account(alice))
    }
    try vault.setPIN(of: alice, to: pin("13579"), keys: secrets("the owner's"))
    try second.setPIN(of: alice, to: pin("24680"), keys: secrets("the thief's"))
    try vault.expectWrong(alice)
  }

  /// - Parameter table: of `alice`.
  private func exchange(_ table: String) throws {
    try fixture.raw { connection in
      try connection.execute(
        """
        ATTACH '\(other.database)' AS other; PRAGMA foreign_keys = OFF;
        INSERT OR REPLACE INTO \(table) SELECT * FROM other.\(table);
        """)
    }
  }

  private func expectRefused(_ digits: String, of account: AccountID = alice) {
    #expect(throws: StateStoreError.corrupt(.pin(of: account))) { try vault.unlock(account, digits) }
  }

  @Test("Unlocks nothing") func otherPIN() throws {
    try exchange("pins")
    expectRefused("24680")
    // It was genuine there, and its count is that row's.
    try vault.expectWrong(alice)
  }

  @Test("Cannot be changed") func changed() throws {
    try exchange("pins")
    let clock = PatientClock(wallClockMilliseconds: 0)
    #expect(throws: StateStoreError.corrupt(.pin(of: alice))) {
      try vault.changePIN(of: alice, from: pin("24680"), to: pin("97531"), parameters: cheap, in: clock.environment)
    }
    expectRefused("24680")
  }

  @Test("Unlocks nothing after the account was stored, renamed, or got another PIN") func kept() throws {
    let former = try vault.account(alice)
    try vault.put(former)
    try vault.rename(alice, to: bob, entry(.renamed))
    try vault.rename(bob, to: alice, entry(.renamed))
    let clock = PatientClock(wallClockMilliseconds: 0)
    let result = try clock.waitOut { environment throws(StateStoreError) in
      try vault.changePIN(of: alice, from: pin("13579"), to: pin("86420"), parameters: cheap, in: environment)
    }
    #expect(result.text == "the owner's")
    #expect(try vault.unlock(alice, "86420").text == "the owner's")
    try exchange("pins")
    expectRefused("24680")
  }

  @Test("Unlocks no one-time passwords") func oneTimePasswords() throws {
    let setting = PINSetting(pin: pin("11223"), limit: 3, parameters: cheap)
    let setup = OneTimePasswordSetup(algorithm: .sha1, digits: 6, factor: .counter(0))
    let secret = secrets("12345678901234567890")
    try vault.store(setup, secret: secret, of: withPIN(5), at: server(acme), under: setting, nil)
    #expect(try vault.unlock(alice, "11223").text == "12345678901234567890")
    try exchange("pins")
    expectRefused("24680")
  }

  private func withPIN(_ length: Int) -> AccountRecord {
    var record = account(alice)
    record.pin = PINMetadata(.token, length: length)
    return record
  }

  /// What versions without the hash have stored.
  private func storeAsFormerly(_ vault: Vault, _ digits: String) throws {
    try vault.setPIN(of: alice, to: pin(digits), keys: secrets("alice"))
    try vault.transaction { connection in
      guard let record = try vault.account(alice, on: connection) else { return }
      var bare = record
      bare.pin = nil
      try vault.put(bare, on: connection)
      try vault.put(record, on: connection)
      let commitment = try vault.pinCommitment(of: alice, on: connection)
      #expect(commitment == nil)
    }
  }

  @Test("Unlocks nothing once the PIN that a former version has set was right") func former() throws {
    try storeAsFormerly(vault, "13579")
    let second = try Vault.open(directory: other.path, deviceSecret: try fixture.deviceSecret())
    try storeAsFormerly(second, "24680")
    try vault.expectWrong(alice)
    guard case .unlocked(let keys) = try vault.unlock(alice, "13579") else {
      Issue.record("the PIN was wrong")
      return
    }
    #expect(keys.count == 32)
    // The same PIN has the same keys from then on, and its count was cleared.
    #expect(try bytes(keys) == unlocked(by: "13579"))
    let clock = PatientClock(wallClockMilliseconds: 0)
    #expect(try vault.pinStatus(of: alice, in: clock.environment)?.counts.previous == 0)
    let result = try clock.waitOut { environment throws(StateStoreError) in
      try vault.changePIN(of: alice, from: pin("13579"), to: pin("86420"), parameters: cheap, in: environment)
    }
    #expect(result.text.utf8.count > 0)
    #expect(try bytes(keys) == unlocked(by: "86420"))
    try exchange("pins")
    expectRefused("24680")
  }

  private func unlocked(by digits: String) throws -> [UInt8]? {
    guard case .unlocked(let keys) = try vault.unlock(alice, digits) else { return nil }
    return bytes(keys)
  }

  @Test("A PIN that is set while a former one is verified stays") func changedMeanwhile() throws {
    try storeAsFormerly(vault, "13579")
    let record = try vault.snapshot { try PINRecord.read(alice, from: $0, vault.keys) }
    try vault.setPIN(of: alice, to: pin("97531"), keys: secrets("new keys"))
    _ = try vault.bind(secrets("alice"), of: record, to: nil, pin("13579"))
    #expect(try vault.unlock(alice, "97531").text == "new keys")
  }

  @Test("Comes with its account only") func wholeAccount() throws {
    try exchange("pins")
    try exchange("accounts")
    #expect(try vault.unlock(alice, "24680").text == "the thief's")
  }
}
