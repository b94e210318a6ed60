// SPDX-License-Identifier: Apache-2.0
package import MobileAuth

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

/// A backend at whose servers a device can register before it has a user.
package protocol FleetRegistration: ServerBackend {
  /// How the URIs begin that only register this device, for messages.
  static var registrationPrefix: String { get }

  /// Whether a recognized URI only registers this device.
  static func isRegistration(_ uri: String) -> Bool

  /// Registers this device, or finds that it is registered. No account is made.
  /// - Returns: the stored server.
  /// - Throws: as `enroll`.
  func register(_ request: EnrollmentRequest) async throws -> TokenServerID
}
