// SPDX-License-Identifier: Apache-2.0
import MobileAuth
import ServerBackends
import Vault

extension AccountOperations {
  /// What the user does about an account that approves nothing; nil for an active one.
  /// - Parameter record: nil if it is damaged.
  func remedy(for account: AccountSummary, _ record: AccountRecord?) -> String? {
    switch account.stage {
    case .active: return nil
    case .enrolling:
      return "run the same `approval-token enroll` with the same URI again, while it is valid, or with a new one"
    case .mustEnrollAgain:
      guard let record, let backend = try? self.backend(of: record) else {
        return "`approval-token remove \(account.id)`, then enroll it again"
      }
      return record.pin != nil && backend is any Reenrollment
        ? "`approval-token reenroll \(account.id)`" : "enroll it again with a new URI"
    }
  }
}
