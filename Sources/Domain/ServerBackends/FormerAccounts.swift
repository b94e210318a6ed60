// SPDX-License-Identifier: Apache-2.0
package import MobileAuth

/// A backend whose accounts can get their first PIN, which this token verifies, after the enrollment.
package protocol FirstPIN: ServerBackend {}

/// A backend that can decode the accounts of former vaults, whose secrets contained everything about an account.
package protocol FormerAccounts: ServerBackend {
  /// Returns the account with its PIN, lock, policies and delivery address in their own fields.
  /// - Throws: `.corrupt` if the account cannot be decoded.
  static func upgraded(_ former: AccountRecord) throws(StateStoreError) -> AccountRecord
}
