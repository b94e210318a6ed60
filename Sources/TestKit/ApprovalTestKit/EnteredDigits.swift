// SPDX-License-Identifier: Apache-2.0
package import MobileAuth
package import Secrets

extension EnteredDigits {
  /// The entry of these digits.
  package init(typing digits: String) { self.init(SecretBytes(copying: Array(digits.utf8))) }
}

extension PanelEvent {
  /// The user types these digits, then Enter.
  package static func typed(_ digits: String) -> PanelEvent { .entered(EnteredDigits(typing: digits)) }
}
