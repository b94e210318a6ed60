// SPDX-License-Identifier: Apache-2.0
import Cryptography
package import MobileAuth
package import PINProtection
package import Secrets

extension BackendContext {
  /// Lets the user choose a PIN that this token verifies, and stores it.
  package func pinPrompter(choosing choose: @escaping @Sendable (PINPolicy) async throws -> PIN) -> PINPrompter {
    PINPrompter { [policy = settings.pinPolicy] in
      try await choose(policy)
    } keep: { [self] account, pin throws(StateStoreError) in
      // The keys that verify messages also sign answers, so they cannot be encrypted with a PIN-derived key. The PIN
      // protects only the approval. Random bytes in their place bind the PIN to this account.
      try store.setPIN(
        of: account, to: pin, keys: Random.secret(32), limit: settings.pinAttempts, parameters: keyDerivation,
        in: environment)
    }
  }

  /// Stores an account with its server and one-time password credential, in one transaction.
  /// - Parameters:
  ///   - pin: encrypts the secret with a key derived from it, and replaces the account's PIN.
  ///   - known: the account before the change; nil for a new account.
  /// - Throws: `.conflict` if the account has changed since it was read, or has a credential already.
  package func store(
    _ credential: OATHCredential, of account: AccountRecord, at server: TokenServerRecord, under pin: PIN?,
    replacing known: AccountRecord? = nil, _ entry: AuditEntry?
  ) throws(StateStoreError) {
    try store.store(
      credential, of: account, at: server,
      under: pin.map { PINSetting(pin: $0, limit: settings.pinAttempts, parameters: keyDerivation) },
      replacing: known, entry)
  }
}
