// SPDX-License-Identifier: Apache-2.0
import MobileAuth
import Secrets
import Vault

/// Verifies PINs with the vault, for token servers that do not verify PINs themselves.
struct VaultPINVerifier: PINVerifier {
  let vault: Vault
  let environment: TokenEnvironment

  func counts(of account: AccountID) throws(StateStoreError) -> FailureCounts? {
    try vault.pinStatus(of: account, in: environment)?.counts
  }

  func verify(_ pin: PIN, of account: AccountID) throws(StateStoreError) -> PINVerificationResult {
    switch try vault.unlock(account, with: pin, in: environment) {
    case .unlocked: .right
    case .wrong(let counts, _): .wrong(counts)
    case .wiped: .wiped
    case .mustWait(let wait): .mustWait(wait)
    }
  }
}
