// SPDX-License-Identifier: Apache-2.0
public import MobileAuth
public import Secrets

extension EnteredDigits {
  /// The entry of these digits.
  public init(typing digits: String) { self.init(SecretBytes(copying: Array(digits.utf8))) }
}

extension PanelEvent {
  /// The user types these digits, then Enter.
  public static func typed(_ digits: String) -> PanelEvent { .entered(EnteredDigits(typing: digits)) }
}
