// SPDX-License-Identifier: Apache-2.0
package import MobileAuth
package import Secrets
package import ServerBackends

/// Stores and deletes the one-time password credential of an `mfauth` registration.
package struct OTPSecretStore: Sendable {
  let store: @Sendable (OATHCredential, PIN?, _ known: AccountRecord, _ account: AccountRecord) throws -> Void
  let drop: @Sendable (AccountID) throws -> Void

  /// - Parameters:
  ///   - store: stores the credential together with an account that is not registered at AM yet, replacing an earlier
  ///     credential. Atomic, and durable when it returns. Throws if the stored account differs from `known`. If there
  ///     is a PIN, the credential is encrypted with a key derived from it, and it becomes the account's only PIN.
  ///   - drop: deletes the credential that an earlier QR code gave an account whose enrollment is not complete, and the
  ///     PIN that protects it. Does nothing if there is none.
  package init(
    keep: @escaping @Sendable (OATHCredential, PIN?, _ known: AccountRecord, _ account: AccountRecord) throws -> Void,
    drop: @escaping @Sendable (AccountID) throws -> Void
  ) {
    self.store = keep
    self.drop = drop
  }
}
