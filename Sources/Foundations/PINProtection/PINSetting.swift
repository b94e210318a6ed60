// SPDX-License-Identifier: Apache-2.0
package import Cryptography
package import Secrets

/// A PIN to set. The key derived from it encrypts a secret.
package struct PINSetting: Sendable {
  package let pin: PIN
  /// The attempt limit: the number of wrong PINs in a row that wipes the account, 1 to 10.
  package let limit: Int
  /// The parameters of the key derivation.
  package let parameters: Scrypt.Parameters

  package init(pin: PIN, limit: Int, parameters: Scrypt.Parameters) {
    self.pin = pin
    self.limit = limit
    self.parameters = parameters
  }
}
