// SPDX-License-Identifier: Apache-2.0
package import Cryptography
package import MobileAuth
package import PINProtection
package import Secrets

/// The token's storage, as far as backends use it. Every change except `enqueue` is durable when the call returns, and
/// what `unlock` says.
package protocol BackendStore: SharedEnrollmentRegistry, StateStore, PushMessageStore {
  /// The device-binding key: without it, a token encrypted with a PIN cannot be decrypted on another device.
  var pinBinding: SecretBytes { get }

  /// Whether the token's own checks found a change by another program. Can be slow.
  var isTamperedWith: Bool { get }

  /// The latest time that the server has reported, in Unix seconds; 0 if it has reported none.
  func latestKnownTime(of server: TokenServerID) throws(StateStoreError) -> Int64

  /// - Throws: `.notFound` if there is no such account.
  func account(_ id: AccountID) throws(StateStoreError) -> AccountRecord

  /// Moves everything of the account to the new ID. Existing audit entries keep the old ID.
  /// - Throws: `.notFound` if there is no such account, `.conflict` if the new name is taken.
  func rename(_ old: AccountID, to new: AccountID, _ entry: AuditEntry) throws(StateStoreError)

  /// The stored push messages of an account, the newest first.
  func messages(of account: AccountID) throws(StateStoreError) -> [DeliveredMessage]

  /// The counts of wrong PINs; nil if the account has no PIN that this token verifies.
  func failureCounts(
    of account: AccountID, in environment: TokenEnvironment
  ) throws(StateStoreError) -> FailureCounts?

  /// Verifies a PIN and decrypts what is encrypted with a key derived from it. Counts the attempt durably before it
  /// verifies the PIN, and wipes the account after the last allowed attempt. A right PIN clears the count with the next
  /// change or `flush`, so that an answer waits for storage once; at once if the attempt was the last allowed one.
  /// - Throws: `.notFound` if the account has no PIN here; `.corrupt` also if a stored count is missing.
  func unlock(
    _ account: AccountID, with pin: PIN, in environment: TokenEnvironment
  ) throws(StateStoreError) -> PINUnlockResult

  /// Changes the PIN. Counts as an attempt with the old PIN. After any result, including a crash, exactly one of the
  /// two PINs is valid, unless the account was wiped.
  /// - Returns: `.unlocked` if the PIN was changed.
  func changePIN(
    of account: AccountID, from old: PIN, to new: PIN, parameters: Scrypt.Parameters, in environment: TokenEnvironment
  ) throws(StateStoreError) -> PINUnlockResult

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
