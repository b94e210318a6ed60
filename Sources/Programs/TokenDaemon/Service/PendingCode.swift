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
  }
}
