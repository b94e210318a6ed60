// SPDX-License-Identifier: Apache-2.0
import MobileAuth
import ServerBackends
import Vault

/// What the user does about an account that approves nothing.
struct AccountRemedy {
  let text: String
  /// Whether the account's first request may make it active, without the user.
  var mayBecomeActive = false
}

extension AccountOperations {
  /// - Parameter record: nil if it is damaged.
  /// - Returns: nil for an active account.
  func remedy(for account: AccountSummary, _ record: AccountRecord?) -> AccountRemedy? {
    var backend: (any ServerBackend)?
    if let record { backend = try? self.backend(of: record) }
    // At some servers a new URI is for another account, beside which this one would stay.
    let removal = "`approval-token remove \(account.id)`, then enroll with a new"
    switch account.stage {
    case .active: return nil
    case .enrolling:
      if let backend = backend as? any LateConfirmation {
        let server = type(of: backend).displayName
        return AccountRemedy(
          text: "the first login makes it active, if \(server) knows it; otherwise run the same "
            + "`approval-token enroll` again, while the QR code is valid, or \(removal) one",
          mayBecomeActive: true)
      }
      return AccountRemedy(
        text: "run the same `approval-token enroll` with the same URI or typed code again, while it is valid; "
          + "otherwise \(removal) one")
    case .mustEnrollAgain:
      let keepsPIN = record?.pin != nil && backend is any Reenrollment
      return AccountRemedy(text: keepsPIN ? "`approval-token reenroll \(account.id)`" : "\(removal) URI")
    }
  }
}
