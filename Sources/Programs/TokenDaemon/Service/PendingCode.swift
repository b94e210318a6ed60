// SPDX-License-Identifier: Apache-2.0
import MobileAuth

extension TokenService {
  /// A code that the user must type into a portal to finish a login.
  struct PendingCode: Sendable {
    let account: AccountID
    let transaction: TransactionID
    let code: PortalCode
    let receivedAtMilliseconds: Int64
    let until: MonotonicInstant

    /// How long a code is shown: portals wait no longer than for the answer itself.
    private static let lifetime = Duration.seconds(120)

    /// A code that was received now.
    init(_ code: PortalCode, of account: AccountID, _ transaction: TransactionID, in environment: TokenEnvironment) {
      (self.account, self.transaction, self.code) = (account, transaction, code)
      receivedAtMilliseconds = environment.wallClockMilliseconds
      until = environment.now + Self.lifetime
    }
  }
}
