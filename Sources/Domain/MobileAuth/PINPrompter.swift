// SPDX-License-Identifier: Apache-2.0
package import Secrets

/// Lets the user choose a PIN that this token verifies, and stores it.
package struct PINPrompter: Sendable {
  package let choose: @Sendable () async throws -> PIN
  package let store: @Sendable (AccountID, PIN) throws(StateStoreError) -> Void

  /// - Parameters:
  ///   - choose: asks the user at the panel.
  ///   - store: stores the PIN of an existing account. Durable when it returns.
  package init(
    choose: @escaping @Sendable () async throws -> PIN,
    keep: @escaping @Sendable (AccountID, PIN) throws(StateStoreError) -> Void
  ) {
    self.choose = choose
    self.store = keep
  }
}
