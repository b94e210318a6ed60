// SPDX-License-Identifier: Apache-2.0
/// The user action that approves a request.
package enum Challenge: Sendable, Equatable {
  /// A hold of the button.
  case confirmation
  /// The account's PIN, verified by the server, or by this token if the server does not verify it.
  case pin(PINChallenge)
  /// A choice among options; the portal shows the right one.
  case choice(ChoiceChallenge)
  /// Data of an authenticator other than the PIN, or a fingerprint; verified by the server, or as a `StandIn`.
  case custom(CustomChallenge)
  /// An action that this token does not support: the request can only be denied.
  /// - Parameter because: the reason, for the user.
  case impossible(because: String)
}

extension Challenge {
  /// The PIN that the challenge takes: alone, after a choice, or in place of another authenticator; nil for none.
  package var pin: PINChallenge? {
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
  /// What approves the request: the first that answers. The server's preferred one comes first. Never empty, each
  /// authenticator once, and at most `AuthenticatorDrivers.most`, because each is asked at the same time; of several,
  /// none is typed on the keypad, because the digits could be a PIN.
  package let sources: [AuthenticatorSource]
  /// The PIN, which the user may type instead; nil if the server or the account allows none.
  package var fallback: PINChallenge?
  /// As in `DriverCall`.
  package var server: String

  /// - Parameter sources: codes that are typed are left out if there is another source; of several of one
  ///   authenticator, the first is taken.
  /// - Returns: nil without a source.
  package init?(_ sources: [AuthenticatorSource], fallback: PINChallenge?, server: String) {
    let external = sources.filter { $0.input != .keypadCode }
    var asked: [AuthenticatorSource] = []
    for source in external.isEmpty ? Array(sources.prefix(1)) : external
    where asked.count < AuthenticatorDrivers.most
      && !asked.contains(where: { $0.authenticator == source.authenticator })
    {
      asked.append(source)
    }
    guard !asked.isEmpty else { return nil }
    self.sources = asked
    self.fallback = fallback
    self.server = server
  }

  package init(
    authenticator: String, kind: Authenticator.Kind = .custom, fallback: PINChallenge?,
    input: DriverInput = .keypadCode, server: String = "", challenge: [UInt8] = [], registration: [UInt8] = []
  ) {
    sources = [
      AuthenticatorSource(
        authenticator: authenticator, kind: kind, input: input, challenge: challenge, registration: registration)
    ]
    self.fallback = fallback
    self.server = server
  }

  /// The authenticator whose code is typed; nil if nothing is typed but the PIN.
  package var code: AuthenticatorSource? { sources.first { $0.input == .keypadCode } }

  package subscript(authenticator: String) -> AuthenticatorSource? {
    sources.first { $0.authenticator == authenticator }
  }
}

/// One authenticator that can answer a request.
package struct AuthenticatorSource: Sendable, Equatable {
  /// The identifier of the authenticator.
  package let authenticator: String
  package let kind: Authenticator.Kind
  package let input: DriverInput
  /// As in `DriverCall`.
  package let challenge: [UInt8]
  /// As in `DriverCall`.
  package let registration: [UInt8]

  package init(
    authenticator: String, kind: Authenticator.Kind, input: DriverInput, challenge: [UInt8] = [],
    registration: [UInt8] = []
  ) {
    self.authenticator = authenticator
    self.kind = kind
    self.input = input
    self.challenge = challenge
    self.registration = registration
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
