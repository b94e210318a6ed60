// SPDX-License-Identifier: Apache-2.0
import Cryptography
import MobileAuth
import PINProtection
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

  /// Checks that a PIN belongs to its account, and binds one to it that a former version has set.
  /// - Parameters:
  ///   - keys: what the PIN has decrypted.
  ///   - counted: the counted attempt.
  ///   - commitment: that of the account.
  /// - Returns: the record and the keys as they are stored now.
  /// - Throws: `.corrupt` if another PIN was put in the place of the account's.
  func bind(
    _ keys: SecretBytes, of counted: PINRecord, to commitment: SecretBytes?, _ pin: PIN
  ) throws(StateStoreError) -> (record: PINRecord, keys: SecretBytes) {
    guard let commitment else {
      // An error only delays it until the next correct PIN.
      return ((try? bindFormer(keys, of: counted, pin)) ?? nil) ?? (counted, keys)
    }
    guard SecretBytes.constantTimeEqual(Self.commitment(to: keys), commitment) else {
      throw .corrupt(.pin(of: counted.account))
    }
    return (counted, keys)
  }

  /// - Returns: nil if another process has changed the PIN meanwhile, or the account has none that this token verifies.
  private func bindFormer(
    _ keys: SecretBytes, of counted: PINRecord, _ pin: PIN
  ) throws(StateStoreError) -> (record: PINRecord, keys: SecretBytes)? {
    let account = counted.account
    var (bound, keys) = (counted, keys)
    // What former versions encrypted, and the same in every vault.
    if SecretBytes.constantTimeEqual(keys, SecretBytes(copying: Array(account.text.utf8))) {
      keys = Random.secret(32)
      let parameters = try mappingStateStoreErrors { try counted.sealedKeys(self.keys).derivation.parameters }
      bound.sealedBytes = try sealedBytes(of: keys, under: pin, for: account, parameters)
    }
    return try transaction(erasing: true) { [bound, keys] connection in
      guard let record = try self.account(account, on: connection), record.pin?.verifier == .token,
        try unchanged(counted, on: connection) != nil, try pinCommitment(of: account, on: connection) == nil
      else { return nil }
      try bound.write(to: connection, self.keys)
      try put(record, committingTo: Self.commitment(to: keys), on: connection)
      return (bound, keys)
    }
  }
}
