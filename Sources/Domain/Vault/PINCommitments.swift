// SPDX-License-Identifier: Apache-2.0
import Cryptography
import MobileAuth
import SQLite
import Secrets

/// The record of an account has a hash of what its PIN encrypts. Rows of `pins` are bound to an account's ID and to the
/// device secret only: without it, the row of an account with this ID in another vault with the same secret would be as
/// good as the account's own.
extension Vault {
  /// 32 bytes.
  static func commitment(to keys: SecretBytes) -> SecretBytes {
    HKDF.derive(keys, info: "approval-token/vault/pin-commitment/v1")
  }

  /// - Returns: nil if there is none: the account has no PIN that this token verifies, or a version set it that had no
  ///   commitments, or the record is missing or damaged.
  func pinCommitment(of account: AccountID, on connection: borrowing Connection) throws -> SecretBytes? {
    try fields(of: account, on: connection)?[RecordFields.Tag.pinCommitment]
  }

  /// Checks that a PIN belongs to its account.
  /// - Parameters:
  ///   - keys: what the PIN has decrypted.
  ///   - commitment: that of the account.
  /// - Throws: `.corrupt` if another PIN was put in the place of the account's.
  func require(_ keys: SecretBytes, in commitment: SecretBytes?, of account: AccountID) throws(StateStoreError) {
    let own = Self.commitment(to: keys)
    if let commitment {
      guard SecretBytes.constantTimeEqual(own, commitment) else { throw .corrupt(.pin(of: account)) }
      return
    }
    // An error only delays it until the next correct PIN.
    try? transaction { connection in
      guard let record = try self.account(account, on: connection), record.pin?.verifier == .token else { return }
      try put(record, committingTo: own, on: connection)
    }
  }
}
