// SPDX-License-Identifier: Apache-2.0
import MobileAuth
import PrivacyIDEAAdapter
import Secrets
import Vault

/// Verifies PINs with the vault, for token servers that do not verify PINs themselves.
struct VaultPINJudge: PINJudge {
  let vault: Vault
  let timekeeper: any Timekeeper

  func counts(of account: AccountID) throws(CustodyFault) -> FailureCounts? {
    try vault.pinStatus(of: account, clock: timekeeper)?.counts
  }

  func judge(_ pin: PIN, of account: AccountID) throws(CustodyFault) -> PINJudgement {
    switch try vault.unlock(account, with: pin, clock: timekeeper) {
    case .unlocked: .right
    case .wrong(let counts, _): .wrong(counts)
    case .wiped: .wiped
    case .mustWait(let wait): .mustWait(wait)
    }
  }
}
