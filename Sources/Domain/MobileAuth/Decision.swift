// SPDX-License-Identifier: Apache-2.0
/// The user's decision at the panel.
package enum Decision: Sendable, Equatable {
  case accept
  case deny(DenialReason)
}

/// The user's reason for a denial.
package enum DenialReason: String, Sendable {
  case declined
  case canceled = "cancelled"
  /// The user did not start the login: the server should investigate.
  case notMe = "not-me"
}

/// The deliberate gesture at the panel that made a decision.
package struct Gesture: Sendable, Equatable {
  package enum Kind: String, Sendable {
    /// Held for at least 0.8 s, then released: approves.
    case hold
    /// Two presses within 0.6 s: denies.
    case doublePress = "double-press"
    /// A press of the deny button, of any duration: denies.
    case denyButton = "deny-button"
    /// Held for at least 6 s, then released: denies and reports.
    case veryLongHold = "very-long-hold"
    /// Digits and Enter: approves if the server accepts the digits.
    case enter
    /// The keypad's cancel key, pressed twice: denies.
    case cancelKeys = "cancel-keys"
    /// Data of an authenticator outside of the panel: approves if the server accepts it.
    case authenticator
    /// Such an authenticator, or its program, cancels: denies.
    case authenticatorCancel = "authenticator-cancel"
  }

  package var kind: Kind
  /// How long the last press lasted.
  package var held: Duration

  package init(_ kind: Kind, held: Duration) {
    self.kind = kind
    self.held = held
  }

  package var decision: Decision {
    switch kind {
    case .hold, .enter, .authenticator: .accept
    case .cancelKeys, .authenticatorCancel: .deny(.canceled)
    case .doublePress, .denyButton: .deny(.declined)
    case .veryLongHold: .deny(.notMe)
    }
  }
}
