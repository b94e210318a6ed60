// SPDX-License-Identifier: Apache-2.0
/// The user action that approves a request.
package enum Challenge: Sendable, Equatable {
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
  package var obstacle: String? { if case .impossible(let why) = self { why } else { nil } }
}

package struct CustomChallenge: Sendable, Equatable {
  /// The identifier of the authenticator.
  package var authenticator: String
  /// The PIN, which the user may type instead; nil if the server or the account allows none.
  package var fallback: PINChallenge?

  package init(authenticator: String, fallback: PINChallenge?) {
    self.authenticator = authenticator
    self.fallback = fallback
  }
}

package struct PINChallenge: Sendable, Equatable {
  /// The number of digits of the PIN.
  package var length: Int
  package var counts: FailureCounts

  package init(length: Int, counts: FailureCounts) {
    self.length = length
    self.counts = counts
  }
}

/// The wrong PIN attempts of one account on this token, as its verifier counts them.
package struct FailureCounts: Sendable, Equatable {
  /// The attempt limit: at this number of wrong attempts in a row the account is wiped.
  package var max: Int
  /// The number of wrong attempts since the last correct PIN.
  package var previous: Int
  package var remaining: Int { max - previous }

  package init(max: Int, previous: Int) {
    self.max = max
    self.previous = previous
  }
}

extension FailureCounts: CustomStringConvertible {
  package var description: String { "\(remaining) of \(max) attempts left" }
}
