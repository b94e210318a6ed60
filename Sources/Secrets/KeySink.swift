/// What a key is for. Not secret: whoever watches can tell a digit from Enter, and the panel has to.
public enum KeyKind: Sendable, Equatable, CaseIterable {
  case digit
  case enter
  /// The last digit.
  case delete
  /// All digits.
  case clear
  /// All digits; twice, the whole request.
  case escape
  case other
}

/// Where a keypad puts what is pressed on it.
public protocol KeySink: Sendable {
  /// - Parameter digit: which one, in ASCII, if it is a digit; otherwise it is not looked at.
  func press(_ kind: KeyKind, digit: UInt8)
  /// The keypad is gone or failing.
  func keypadIsUnavailable(_ why: String)
  /// The keypad is there (again).
  func keypadIsAvailable()
}
