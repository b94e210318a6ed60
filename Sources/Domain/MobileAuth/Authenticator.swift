// SPDX-License-Identifier: Apache-2.0
import DisplayText

/// What proves the user of one account, as listed: a value that does not change when the account does.
package struct Authenticator: Sendable, Equatable {
  package enum Kind: String, Sendable { case pin, biometric, custom }

  /// The identifier of the PIN, which every account with a PIN has.
  package static let pinIdentifier = "pin"

  /// The server's name for programs.
  package let identifier: String
  /// For display, from the server's configuration.
  package let name: String
  package let kind: Kind
  /// Whether it can log in and approve requests.
  package let isRegistered: Bool
  /// Whether a login that names none uses it. True for one at most.
  package let isPreferred: Bool
  /// Whether the server offers it and this token can use it now.
  package let isSupported: Bool

  package init(
    identifier: String, name: String, kind: Kind, isRegistered: Bool, isPreferred: Bool = false, isSupported: Bool
  ) {
    self.identifier = identifier
    self.name = name
    self.kind = kind
    self.isRegistered = isRegistered
    self.isPreferred = isPreferred
    self.isSupported = isSupported
  }
}

extension Authenticator {
  /// Whether a text can be an identifier, which is a part of URLs: 1 to 64 of `a-z`, `0-9`, `-`, `_` and `.`, and not
  /// only dots.
  package static func isIdentifier(_ text: String) -> Bool {
    (1...64).contains(text.utf8.count) && text.utf8.contains { $0 != UInt8(ascii: ".") }
      && text.utf8.allSatisfy { byte in
        switch byte {
        case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "0")...UInt8(ascii: "9"): true
        default: "-_.".utf8.contains(byte)
        }
      }
  }
}

extension [Authenticator] {
  package var registered: Self { filter(\.isRegistered) }

  /// Those that could be registered now.
  package var notRegistered: Self { filter { !$0.isRegistered && $0.isSupported } }

  package var preferred: Authenticator? { first(where: \.isPreferred) }

  package subscript(identifier: String) -> Authenticator? { first { $0.identifier == identifier } }
}

/// The result of the server's script for a custom authenticator.
package struct AuthenticatorInfo: Sendable, Equatable {
  /// 2000 to 2999: accepted; 3000 to 3999: the script gave no result; 4000 to 4999: refused, may be tried again;
  /// 5000 to 5999: refused for good.
  package let status: Int
  /// Its meaning is the script's. For programs: at most `longestData` Unicode scalars, and not sanitized.
  package let data: String

  /// What a script may return, if each of its bytes is a character.
  package static let longestData = 4096

  package init(status: Int, data: String) {
    self.status = status
    self.data = data
  }
}

/// An attempt with an authenticator that did not succeed.
package struct AuthenticatorFailure: Sendable, Equatable {
  /// Number of the error catalog: 9022, 9027, 9030, or 10000 if the server could not run the script.
  package let number: Int
  package let reason: String
  /// Nil if no script was asked.
  package let info: AuthenticatorInfo?
  /// Whether the authenticator is no longer registered.
  package let isRevoked: Bool
  /// Whether the server has ended the request that it should have approved; otherwise the request is still open.
  package let endsRequest: Bool

  package init(
    number: Int, reason: String, info: AuthenticatorInfo? = nil, isRevoked: Bool, endsRequest: Bool = false
  ) {
    self.number = number
    self.reason = reason
    self.info = info
    self.isRevoked = isRevoked
    self.endsRequest = endsRequest
  }
}

extension AuthenticatorFailure: CustomStringConvertible {
  package var description: String {
    let result = info.map { " (status \($0.status)\($0.data.isEmpty ? "" : ": \($0.data.sanitized)"))" } ?? ""
    return reason + result + (isRevoked ? "; the authenticator is no longer registered" : "")
  }
}
