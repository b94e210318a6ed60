// SPDX-License-Identifier: Apache-2.0
/// One press of a key. Not secret, except for the value of a digit: an observer can distinguish a digit from Enter, and
/// the panel must.
package enum KeyPress: Sendable, Equatable {
  case digit(TypedDigit)
  case enter
  /// Deletes the last digit.
  case delete
  /// Deletes all digits.
  case clear
  /// Deletes all digits; pressed twice, denies the request.
  case escape
  case other
}

/// One digit as typed: ASCII, in a locked page of its own, so that an event which carries it can be queued, dropped or
/// ignored. Zeroed when the last reference is released.
package struct TypedDigit: Sendable, Equatable {
  let byte: SecretBytes

  /// - Parameter ascii: a digit. The keypad guarantees this; a check here would branch on it.
  package init(_ ascii: UInt8) {
    byte = SecretBytes(count: 1) { (target: UnsafeMutableRawBufferPointer) in target[0] = ascii }
  }

  /// Gives access to the one byte. A copy that the closure makes is no longer protected by this type.
  package func withExposedSecret<Result, Failure: Error>(
    _ body: (UInt8) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    try byte.withExposedSecret { (bytes) throws(Failure) in try body(bytes[0]) }
  }

  /// Runs in constant time.
  package static func == (one: TypedDigit, other: TypedDigit) -> Bool {
    SecretBytes.constantTimeEqual(one.byte, other.byte)
  }
}

/// Receives the keys of a keypad.
package protocol KeySink: Sendable {
  func press(_ key: KeyPress)
  /// The keypad was unplugged or fails.
  func keypadIsUnavailable(_ why: String)
  /// The keypad is available (again).
  func keypadIsAvailable()
}
