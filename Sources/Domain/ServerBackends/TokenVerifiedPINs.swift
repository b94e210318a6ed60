// SPDX-License-Identifier: Apache-2.0
package import MobileAuth

/// A backend whose accounts can have a PIN that this token verifies.
package protocol TokenVerifiedPINs: ServerBackend {
  /// The number of digits of the account's PIN, within `PINPolicy.lengths`; nil if the account has none.
  func pinLength(of account: AccountRecord) throws(StateStoreError) -> Int?
}

/// A backend whose accounts can get their first PIN after the enrollment.
package protocol FirstPIN: TokenVerifiedPINs {
  /// Returns the account with the length of its PIN, which the state store has.
  func setting(pinLength: Int, of account: AccountRecord) throws -> AccountRecord
}
