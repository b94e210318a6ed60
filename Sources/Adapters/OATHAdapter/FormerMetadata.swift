// SPDX-License-Identifier: Apache-2.0
import MobileAuth
import PINProtection
import Secrets

/// The former encoding of an account that only generates one-time passwords: a line with the PIN length and the word
/// "locked", then the policies as received.
struct FormerMetadata {
  let pinLength: Int?
  let policies: String?
  let isLocked: Bool

  /// - Throws: `.corrupt` if a word is neither a PIN length nor "locked": it could have been a lock.
  init(_ account: AccountRecord) throws(StateStoreError) {
    let corrupt = StateStoreError.corrupt(.keys(of: account.id))
    let text = account.secrets.withExposedSecret { String(validating: $0, as: UTF8.self) }
    guard let parts = text?.split(separator: "\n", maxSplits: 1, omittingEmptySubsequences: false) else {
      throw corrupt
    }
    var words = parts[0].split(separator: " ").map(String.init)
    isLocked = words.last == "locked"
    if isLocked { words.removeLast() }
    pinLength = words.first.flatMap { Int($0) }
    guard words.isEmpty || words.count == 1 && pinLength.map(PINPolicy.lengths.contains) == true else { throw corrupt }
    policies = parts.count > 1 ? String(parts[1]) : nil
  }
}
