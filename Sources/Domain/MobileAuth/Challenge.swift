// SPDX-License-Identifier: Apache-2.0
/// The user action that approves a request.
public enum Challenge: Sendable, Equatable {
  /// A hold of the button.
  case confirmation
  /// The account's PIN, verified by the server, or by this token if the server does not verify it.
  case pin(PINChallenge)
  /// A choice among options; the portal shows the right one.
  case choice(ChoiceChallenge)
  /// A code for a custom authenticator, verified by the server.
  case custom(CustomChallenge)
  /// An action that this token does not support: the request can only be denied.
  /// - Parameter because: the reason, for the user.
  case impossible(because: String)
}

extension Challenge {
  /// The PIN that the challenge takes: alone, after a choice, or in place of another authenticator; nil for none.
  var pin: PINChallenge? {
    switch self {
    case .confirmation, .impossible: nil
    case .pin(let challenge): challenge
    case .choice(let challenge): challenge.pin
    case .custom(let challenge): challenge.fallback
    }
  }

  /// Why the request can only be denied; nil if it can be approved.
  public var obstacle: String? { if case .impossible(let why) = self { why } else { nil } }
}

public struct CustomChallenge: Sendable, Equatable {
  /// The identifier of the authenticator.
  public var authenticator: String
  /// The PIN, which the user may type instead; nil if the server or the account allows none.
  public var fallback: PINChallenge?

  public init(authenticator: String, fallback: PINChallenge?) {
    self.authenticator = authenticator
    self.fallback = fallback
  }
}

public struct PINChallenge: Sendable, Equatable {
  /// The number of digits of the PIN.
  public var length: Int
  public var counts: FailureCounts

  public init(length: Int, counts: FailureCounts) {
    self.length = length
    self.counts = counts
  }
}

/// The wrong PIN attempts of one account on this token, as its verifier counts them.
public struct FailureCounts: Sendable, Equatable {
  /// The attempt limit: at this number of wrong attempts in a row the account is wiped.
  public var max: Int
  /// The number of wrong attempts since the last correct PIN.
  public var previous: Int
  public var remaining: Int { max - previous }

  public init(max: Int, previous: Int) {
    self.max = max
    self.previous = previous
  }
}

extension FailureCounts: CustomStringConvertible {
  public var description: String { "\(remaining) of \(max) attempts left" }
}
