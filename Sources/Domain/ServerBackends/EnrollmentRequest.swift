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
  /// Whether the user chooses a PIN even if the server requires none. Only if the form has `.pin`.
  package var asksPIN = false
  /// The topic where the server delivers messages. Only if the form has `.mailbox`.
  package var mailbox: String?
  /// The origins that the account may call. Only if the form has `.origins`.
  package var allowedOrigins: [String] = []
  /// How long a network is waited for.
  package var networkWait = Duration.zero
  /// Lets the user choose a PIN; nil without a keypad.
  package var pinChooser: PINChooser?
  /// Called with true while there is no network, and with false before the next attempt.
  package var waitsForNetwork: @Sendable (Bool) -> Void = { _ in }
  /// Called with progress messages for the waiting user.
  package var progress: @Sendable (String) -> Void = { _ in }

  package init(_ uri: String) { self.uri = uri }
}

/// What a user may choose at an enrollment, if the URI accepts it.
package enum EnrollmentOption: Sendable, CaseIterable {
  /// A PIN that this token verifies.
  case pin
  /// The topic where the server delivers messages.
  case mailbox
  /// Origins that the account may call: it has sessions whose access tokens other servers accept.
  case origins

  /// The name of the argument, for messages.
  package var argument: String {
    switch self {
    case .pin: "--ask-pin"
    case .mailbox: "--mailbox"
    case .origins: "--allow-origin"
    }
  }
}

/// The options that an enrollment URI accepts.
package struct EnrollmentForm: Sendable, Equatable {
  /// Some of `ServerBackend.enrollmentOptions`.
  package var options: Set<EnrollmentOption>
  /// What decides about a PIN if the user may not, for messages.
  package var pinDecision = "the server decides"

  package init(_ options: Set<EnrollmentOption> = []) { self.options = options }
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
