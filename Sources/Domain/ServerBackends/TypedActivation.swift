// SPDX-License-Identifier: Apache-2.0

/// A backend whose users can type a one-time code on the keypad instead of giving a URI, if the server's address is
/// known.
package protocol TypedActivation: ServerBackend {
  /// Checks the address of a server before its code is typed.
  /// - Parameter pins: SHA-256 of the server's public key, in Base64.
  /// - Throws: the error that `form` would throw for a URI with this address.
  static func check(server: String, pins: [String]) throws

  /// The enrollment URI for a server and a code.
  /// - Parameter code: the typed digits.
  /// - Returns: nil if the code has a typing error.
  static func enrollmentURI(server: String, code: String, pins: [String]) -> String?
}
