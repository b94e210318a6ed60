// SPDX-License-Identifier: Apache-2.0
/// The kind of a key. Not secret: an observer can distinguish a digit from Enter, and the panel must.
public enum KeyKind: Sendable, Equatable, CaseIterable {
  case digit
  case enter
  /// Deletes the last digit.
  case delete
  /// Deletes all digits.
  case clear
  /// Deletes all digits; pressed twice, denies the request.
  case escape
  case other
}

/// Receives the keys of a keypad.
public protocol KeySink: Sendable {
  /// - Parameter digit: the ASCII digit if the kind is `.digit`; otherwise ignored.
  func press(_ kind: KeyKind, digit: UInt8)
  /// The keypad was unplugged or fails.
  func keypadIsUnavailable(_ why: String)
  /// The keypad is available (again).
  func keypadIsAvailable()
}
