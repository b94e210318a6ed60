// SPDX-License-Identifier: Apache-2.0
public import Secrets

/// Lets the user choose a PIN that this token verifies, and stores it.
public struct PINDesk: Sendable {
  public let choose: @Sendable () async throws -> PIN
  public let keep: @Sendable (AccountID, PIN) throws(CustodyFault) -> Void

  /// - Parameters:
  ///   - choose: asks the user at the panel.
  ///   - keep: stores the PIN of an existing account. Durable when it returns.
  public init(
    choose: @escaping @Sendable () async throws -> PIN,
    keep: @escaping @Sendable (AccountID, PIN) throws(CustodyFault) -> Void
  ) {
    self.choose = choose
    self.keep = keep
  }
}
