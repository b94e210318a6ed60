// SPDX-License-Identifier: Apache-2.0
package import MobileAuth
package import Secrets

/// A backend whose accounts keep their PINs when their keys are dropped: the PIN enrolls them again.
package protocol Reenrollment: ServerBackend {
  /// Enrolls an account again in the stage `mustEnrollAgain` with a PIN. Durable when it returns; before that the
  /// account stays in its stage.
  /// - Parameter progress: called with a message for the waiting user.
  /// - Throws: `TokenServerError`, also `.pinIncorrect`; `StateStoreError`.
  func enrollAgain(
    _ account: AccountRecord, typing pin: PIN, _ progress: @escaping @Sendable (String) -> Void
  ) async throws -> AccountRecord
}

/// A backend whose server may know an account that is still in the stage `enrolling`, because the answer to the
/// enrollment was lost: the account's first request then makes it active, without the user.
package protocol LateConfirmation: ServerBackend {}

/// A backend whose accounts can get their first PIN, which this token verifies, after the enrollment.
package protocol FirstPIN: ServerBackend {}

/// A backend that can decode the accounts of former vaults, whose secrets contained everything about an account.
package protocol FormerAccounts: ServerBackend {
  /// Returns the account with its PIN, lock, policies and delivery address in their own fields.
  /// - Throws: `.corrupt` if the account cannot be decoded.
  static func upgraded(_ former: AccountRecord) throws(StateStoreError) -> AccountRecord
}
