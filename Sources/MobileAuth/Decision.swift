/// What a person decided at the panel.
public enum Decision: Sendable, Equatable {
  case accept
  case deny(DenialReason)
}

/// Why a person said no.
public enum DenialReason: String, Sendable {
  case declined
  case cancelled
  /// "I did not start this": the server should look into it.
  case notMe = "not-me"
}

/// The deliberate act on the panel behind a decision.
public struct Gesture: Sendable, Equatable {
  public enum Kind: String, Sendable {
    /// Held at least 0.8 s, then released: accept.
    case hold
    /// Two presses within 0.6 s: deny.
    case doublePress = "double-press"
    /// Held at least 6 s, then released: deny and report.
    case veryLongHold = "very-long-hold"
    /// Digits and Enter: accept, if the server finds them right.
    case enter
    /// The keypad's cancel key, twice: deny.
    case cancelKeys = "cancel-keys"
  }

  public var kind: Kind
  /// How long the button was down, the last time.
  public var held: Duration

  public init(_ kind: Kind, held: Duration) {
    self.kind = kind
    self.held = held
  }

  public var decision: Decision {
    switch kind {
    case .hold, .enter: .accept
    case .cancelKeys: .deny(.cancelled)
    case .doublePress: .deny(.declined)
    case .veryLongHold: .deny(.notMe)
    }
  }
}
