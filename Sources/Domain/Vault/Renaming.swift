// SPDX-License-Identifier: Apache-2.0
package import MobileAuth
import SQLite

extension Vault {
  /// Moves everything of the account to the new ID. Existing audit entries keep the old ID.
  /// - Throws: `.notFound` if there is no such account, `.conflict` if the new name is taken.
  package func rename(_ old: AccountID, to new: AccountID, _ entry: AuditEntry) throws(StateStoreError) {
    try transaction(erasing: true) { connection in
      guard var account = try account(old, on: connection) else { throw StateStoreError.notFound(.account(old)) }
      guard try self.account(new, on: connection) == nil else {
        throw StateStoreError.conflict(.account(new), .nameTaken)
      }
      let commitment = try pinCommitment(of: old, on: connection)
      account.id = new
      try put(account, committingTo: commitment, on: connection)
      // Records are bound to the account ID (associated data and MAC), so they are encrypted again under the new ID.
      if let pin = try PINRecord.find(old, on: connection, keys) {
        let ciphertext = try PINRecord.sealedBytes(of: try pin.sealedKeys(keys), for: new, keys)
        try PINRecord(account: new, limit: pin.limit, failures: pin.failures, sealedBytes: ciphertext).write(
          to: connection, keys)
      }
      for var intent in try intents(on: connection) where intent.account == old {
        intent.account = new
        try write(intent, on: connection)
      }
      // Damaged ones stay damaged, until the service reports them.
      try connection.run("UPDATE intents SET account = ? WHERE account = ?", new.text, old.text)
      try moveMessages(of: old, to: new, on: connection)
      try moveOneTimePasswords(of: old, to: new, on: connection)
      try connection.run("DELETE FROM accounts WHERE id = ?", old.text)
      try append(entry, on: connection)
    }
  }
}
