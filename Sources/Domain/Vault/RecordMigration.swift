// SPDX-License-Identifier: Apache-2.0
import Cryptography
package import MobileAuth
import SQLite
import Secrets

/// Fills in the fields of an account whose `secrets` contain everything, in the former encoding of its adapter.
/// - Parameter kind: of the account's server.
/// - Throws: if the account cannot be decoded; it is then unusable until it is enrolled again.
package typealias AccountUpgrade = @Sendable (_ kind: String, _ former: AccountRecord) throws -> AccountRecord

/// Migrates ciphertexts that contain only what the adapter encoded, to `SecretFields`.
struct RecordMigration {
  let keys: VaultKeys
  let upgrade: AccountUpgrade?

  /// A ciphertext that cannot be decrypted or decoded stays as it is: reading it is an error before and after.
  func run(on connection: borrowing Connection) throws {
    // With another device secret nothing could be decrypted, and nothing would be migrated.
    try Schema.checkCanary(connection, keys)
    let kinds = try migrateServers(on: connection)
    try migrateAccounts(atServersOf: kinds, on: connection)
  }

  /// - Returns: the kind of each server whose ciphertext authenticates it.
  private func migrateServers(on connection: borrowing Connection) throws -> [String: String] {
    let rows = try connection.rows("SELECT id, kind, url, box FROM servers") { row in
      (id: try row.text(0), kind: try row.text(1), url: try row.text(2), ciphertext: try row.blob(3))
    }
    var kinds: [String: String] = [:]
    for row in rows {
      let associated = RecordFields.associatedData(ofServer: TokenServerID(row.id), kind: row.kind, url: row.url)
      guard let former = try? keys.open(row.ciphertext, at: associated) else { continue }
      let ciphertext = try keys.seal(RecordFields.make(.random(), former).encoded, at: associated)
      try connection.run("UPDATE servers SET box = ? WHERE id = ?", ciphertext, row.id)
      kinds[row.id] = row.kind
    }
    return kinds
  }

  private func migrateAccounts(atServersOf kinds: [String: String], on connection: borrowing Connection) throws {
    let rows = try connection.rows("SELECT id, server, profile, stage, box FROM accounts") { row in
      (
        id: AccountID(try row.text(0)), server: TokenServerID(try row.text(1)), profile: try row.text(2),
        stage: try row.text(3), ciphertext: try row.blob(4)
      )
    }
    for row in rows {
      let associated = RecordFields.associatedData(of: row.id, row.server, row.profile, row.stage)
      guard let kind = kinds[row.server.text], let stage = EnrollmentStage(rawValue: row.stage),
        let secrets = try? keys.open(row.ciphertext, at: associated)
      else { continue }
      let former = AccountRecord(
        id: row.id, server: row.server, profile: row.profile, stage: stage, enrollment: .random(),
        secrets: secrets)
      guard let upgrade else { throw StateStoreError.conflict(.account(row.id), .formerEncoding) }
      guard let account = try? upgrade(kind, former) else { continue }
      let ciphertext = try keys.seal(account.fields.encoded, at: associated)
      try connection.run("UPDATE accounts SET box = ? WHERE id = ?", ciphertext, row.id.text)
    }
  }
}

extension EnrollmentID {
  /// For a record that has none: 128 random bits.
  static func random() -> EnrollmentID { EnrollmentID(Random.bytes(16).lowercaseHex) }
}
