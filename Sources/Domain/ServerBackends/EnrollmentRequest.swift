// SPDX-License-Identifier: Apache-2.0
package import PINProtection
package import Secrets

/// An enrollment as the user requested it.
package struct EnrollmentRequest: Sendable {
  package let uri: String
  /// The user's name for the account; nil for a name that the backend chooses.
  package var name: String?
  /// A PEM file with additional certificate authorities; nil for those of the configuration.
  package var authorities: String?
  /// SHA-256 of the server's public key, in Base64. Ignored if the URI contains pins.
  package var pins: [String] = []
  /// Whether the pins of earlier enrollments at the server are removed.
  package var dropsPins = false
  /// Whether the user chooses a PIN even if the server requires none. Only if `EnrollmentForm.takesPIN`.
  package var asksPIN = false
  /// The topic where the server delivers messages. Only if `EnrollmentForm.takesMailbox`.
  package var mailbox: String?
  /// The origins that the account may call. Only if `EnrollmentForm.takesOrigins`.
  package var allowedOrigins: [String] = []
  /// Lets the user choose a PIN; nil without a keypad.
  package var pinChooser: PINChooser?
  /// Called with progress messages for the waiting user.
  package var progress: @Sendable (String) -> Void = { _ in }

  package init(_ uri: String) { self.uri = uri }
}

/// The options that an enrollment URI accepts.
package struct EnrollmentForm: Sendable, Equatable {
  /// Whether the user may ask for a PIN that this token verifies.
  package var takesPIN = false
  /// What decides about a PIN if the user may not, for messages.
  package var pinDecision = "the server decides"
  package var takesMailbox = false
  /// Whether the account has sessions whose access tokens other servers accept.
  package var takesOrigins = false

  package init() {}
}

/// The panel, for an enrollment that needs a new PIN.
package struct PINChooser: Sendable {
  /// Asks the user until a PIN satisfies the policy.
  package let choose: @Sendable (PINPolicy) async throws -> PIN
  /// Shows that the PIN was stored.
  package let confirm: @Sendable () async throws -> Void

  package init(
    choose: @escaping @Sendable (PINPolicy) async throws -> PIN, confirm: @escaping @Sendable () async throws -> Void
  ) {
    self.choose = choose
    self.confirm = confirm
  }
}
