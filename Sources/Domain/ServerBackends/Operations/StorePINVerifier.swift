// SPDX-License-Identifier: Apache-2.0
package import MobileAuth
package import Secrets

/// Verifies PINs with the token's storage, for token servers that do not verify PINs themselves.
package struct StorePINVerifier: PINVerifier {
  private let store: any BackendStore
  private let environment: TokenEnvironment

  package init(_ store: any BackendStore, in environment: TokenEnvironment) {
    self.store = store
    self.environment = environment
  }

  package func counts(of account: AccountID) throws(StateStoreError) -> FailureCounts? {
    try store.failureCounts(of: account, in: environment)
  }

  package func verify(_ pin: PIN, of account: AccountID) throws(StateStoreError) -> PINVerificationResult {
    switch try store.unlock(account, with: pin, in: environment) {
    case .unlocked: .right
    case .wrong(let counts, _): .wrong(counts)
    case .wiped: .wiped
    case .mustWait(let wait): .mustWait(wait)
    }
  }
}
