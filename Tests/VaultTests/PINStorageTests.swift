// SPDX-License-Identifier: Apache-2.0
import Cryptography
import MobileAuth
import PINProtection
import SQLite
import Secrets
import Testing
import VaultModel

@testable import Vault

/// PINs on storage that loses writes, is old, or is restored from an earlier copy.
@Suite("PINs and the SD card", .timeLimit(.minutes(5))) struct PINStorageTests {
  private let fixture: VaultFixture

  init() throws { fixture = try VaultFixture(in: "/dev/shm") }

  private func prepared(_ vault: Vault) throws -> Vault {
    try vault.put(server(acme))
    try vault.put(account(alice))
    try vault.setPIN(of: alice, to: pin("13579"), keys: secrets("keys"))
    return vault
  }

  @Test("A count that storage lost is detected before the PIN is verified", arguments: ["13579", "00000"])
  func countThatStorageLostIsDetectedBeforeThePINIsVerified(digits: String) throws {
    let secret = try fixture.deviceSecret()
    let vault = try prepared(
      RecordingVFS.recording(fixture.path, in: { _ in }) {
        try Vault.open(directory: fixture.path, deviceSecret: secret)
      })
    RecordingVFS.deafen(fixture.path)
    let clock = PatientClock(wallClockMilliseconds: 0)
    let fault = #expect(throws: StateStoreError.self) {
      try vault.unlock(alice, with: pin(digits), in: clock.environment)
    }
    // The index of the log, in memory, has the page that the storage has lost.
    #expect("\(fault!)".contains("SELECT max_failures, failures, box, mark FROM pins"), "\(fault!)")
  }

  /// A limit of every file: the count is a number on an SD card that can be copied.
  @Test("An old image gives attempts back, and nothing shows it") func oldImageGivesAttemptsBackAndNothingShowsIt()
    throws
  {
    let vault = try prepared(try fixture.vault())
    let image = try contents(of: fixture.database)
    for _ in 1...2 { try vault.expectWrong(alice) }
    #expect(try vault.unlock(alice, "00000").text == "wiped")

    let copy = try VaultFixture(in: "/dev/shm")
    try write(try contents(of: "\(fixture.path)/device-secret"), to: "\(copy.path)/device-secret", mode: 0o400)
    try write(image, to: copy.database)
    let old = try copy.vault()
    #expect(try old.unlock(alice, "00000").text == "wrong 1 of 3, 1 s")
    #expect(try old.unlock(alice, "13579").text == "keys")
    guard case .intact = try old.verifyAudit() else {
      Issue.record("the old chain is whole in itself")
      return
    }
  }

  /// For a PIN that the server verifies, no count is stored that could be restored: attempts leave the storage
  /// unchanged.
  @Test("An old image gives no attempts for a PIN that the server verifies")
  func oldImageGivesNoAttemptsForPINThatTheServerVerifies() throws {
    let vault = try fixture.vault()
    let token = Random.secret(32)
    let wrapped = try WrappedToken.wrap(token, under: pin("13579"), binding: vault.pinBinding, parameters: cheap)
    try vault.put(server(acme))
    var record = account(alice)
    record.secrets = SecretBytes.joining([secrets("other keys"), wrapped.encoded])
    try vault.put(record)
    let image = try contents(of: fixture.database)
    for digits in ["00000", "00001", "00002", "00003", "13579"] {
      let parts = try #require(try vault.account(alice).secrets.parts())
      let found = try WrappedToken(encoded: parts[1]).unwrap(with: pin(digits), binding: vault.pinBinding)
      #expect(SecretBytes.constantTimeEqual(found, token) == (digits == "13579"))
    }
    #expect(try contents(of: fixture.database) == image)
    #expect(try vault.pinStatus(of: alice, in: PatientClock(wallClockMilliseconds: 0).environment) == nil)
  }

  @Test("A vault of format 1 is migrated to the newest format with its contents")
  func vaultOfFormat1IsMigratedToTheNewestFormatWithItsContents() throws {
    let secret = try fixture.deviceSecret()
    let keys = VaultKeys(of: secret)
    try fixture.raw { raw in
      try raw.migrate(Array(Schema.steps(keys).prefix(1)))
      let serverPlace = CanonicalBytes("servers", "acme", "reference", "https://tokens.example")
      try raw.run(
        "INSERT INTO servers VALUES ('acme', 'reference', 'https://tokens.example', ?)",
        keys.seal(secrets("server key"), at: serverPlace))
      let associated = CanonicalBytes("accounts", "alice", "acme", "p", "active")
      try raw.run(
        "INSERT INTO accounts VALUES ('alice', 'acme', 'p', 'active', ?)",
        keys.seal(secrets("account key"), at: associated))
      #expect(try raw.rows("PRAGMA user_version") { try $0.integer(0) } == [1])
    }
    let vault = try Vault.open(directory: fixture.path, deviceSecret: secret, upgrade: { _, former in former })
    let newest = Int64(Schema.steps(keys).count)
    #expect(try fixture.raw { try $0.rows("PRAGMA user_version") { try $0.integer(0) } } == [newest])
    #expect(bytes(try vault.account(alice).secrets) == bytes(secrets("account key")))
    #expect(bytes(try vault.servers()[0].secrets) == bytes(secrets("server key")))
    #expect(try vault.pinStatus(of: alice, in: PatientClock(wallClockMilliseconds: 0).environment) == nil)
    try vault.setPIN(of: alice, to: pin("13579"), keys: secrets("keys"))
    #expect(try fixture.vault().unlock(alice, "13579").text == "keys")
    #expect(try vault.verifyAudit() == .intact(lines: 1, first: 1))
  }
}
