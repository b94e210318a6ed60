// SPDX-License-Identifier: Apache-2.0
public import Secrets

/// Lets the user choose a PIN that this token verifies, and stores it.
public struct PINPrompter: Sendable {
  public let choose: @Sendable () async throws -> PIN
  public let store: @Sendable (AccountID, PIN) throws(StateStoreError) -> Void

  /// - Parameters:
  ///   - choose: asks the user at the panel.
  ///   - store: stores the PIN of an existing account. Durable when it returns.
  public init(
    choose: @escaping @Sendable () async throws -> PIN,
    keep: @escaping @Sendable (AccountID, PIN) throws(StateStoreError) -> Void
  ) {
    self.choose = choose
    self.store = keep
  }
}
