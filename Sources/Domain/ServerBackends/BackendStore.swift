// SPDX-License-Identifier: Apache-2.0
package import Cryptography
package import MobileAuth
package import Secrets

/// The token's storage, as far as backends use it. Every change is durable when the call returns.
package protocol BackendStore: SharedEnrollmentRegistry, StateStore, PushMessageStore {
  /// The device-binding key: without it, a token encrypted with a PIN cannot be decrypted on another device.
  var pinBinding: SecretBytes { get }

  /// Whether the token's own checks found a change by another program. Can be slow.
  var isTamperedWith: Bool { get }

  /// The latest time that the server has reported, in Unix seconds; 0 if it has reported none.
  func latestKnownTime(of server: TokenServerID) throws(StateStoreError) -> Int64

  /// Sets the PIN of an account, which this token verifies.
  /// - Parameters:
  ///   - keys: encrypted with a key derived from the PIN.
  ///   - limit: the attempt limit: the number of wrong PINs in a row that wipes the account, 1 to 10.
  /// - Throws: `.notFound` if there is no such account.
  func setPIN(
    of account: AccountID, to pin: PIN, keys: SecretBytes, limit: Int, parameters: Scrypt.Parameters,
    in environment: TokenEnvironment
  ) throws(StateStoreError)

  func accountsWithOneTimePasswords() throws(StateStoreError) -> Set<AccountID>

  /// See `BackendContext.store`.
  func store(
    _ credential: OATHCredential, of account: AccountRecord, at server: TokenServerRecord, under pin: PINSetting?,
    replacing known: AccountRecord?, _ entry: AuditEntry?
  ) throws(StateStoreError)

  /// Deletes the credential of an account whose enrollment is not complete, and the PIN that protects it. Does nothing
  /// if there is none.
  /// - Throws: `.conflict` if the enrollment is complete: codes may have been shown.
  func dropOneTimePasswords(of account: AccountID) throws(StateStoreError)
}

/// A PIN to set, with the attempt limit (1 to 10) and the parameters of its key derivation.
package struct PINSetting: Sendable {
  package let pin: PIN
  package let limit: Int
  package let parameters: Scrypt.Parameters

  package init(pin: PIN, limit: Int, parameters: Scrypt.Parameters) {
    self.pin = pin
    self.limit = limit
    self.parameters = parameters
  }
}
