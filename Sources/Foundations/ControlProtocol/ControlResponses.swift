// SPDX-License-Identifier: Apache-2.0

// The answers of the running service on the control socket: one or more JSON lines for each request.

package struct ControlFailure: Codable, Sendable {
  package var error: String
  /// Exit code of sysexits(3).
  package var code: Int32
  /// See `CommandError.number`.
  package var number: Int?
  /// See `CommandError.info`.
  package var info: ScriptInfo?
  /// See `CommandError.underlyingError`.
  package var underlyingError: String?

  enum CodingKeys: String, CodingKey {
    case error, code, number, info
    case underlyingError = "underlying_error"
  }

  package init(_ error: CommandError) {
    self.error = error.description
    code = error.code.rawValue
    number = error.number
    info = error.info
    underlyingError = error.underlyingError
  }
}

/// A line before the answer: the current step, for the waiting user.
package struct ControlProgress: Codable, Sendable {
  package var progress: String

  package init(_ progress: String) { self.progress = progress }
}

package struct AccountResponse: Codable, Sendable {
  package var account: String
  package var server: String
  package var profile: String

  package init(account: String, server: String, profile: String) {
    self.account = account
    self.server = server
    self.profile = profile
  }
}

/// What `enroll` has made: an account, or with a fleet token only a registration of this device.
package struct EnrollmentResponse: Codable, Sendable {
  package var account: String?
  package var server: String
  package var profile: String?

  package init(_ account: AccountResponse) {
    self.account = account.account
    server = account.server
    profile = account.profile
  }

  package init(registeredAt server: String) { self.server = server }
}

package struct SessionResponse: Codable, Sendable {
  /// Nil when no user is logged in.
  package var account: String?
  package var secondsLeft: Int64?
  /// Whether the token server confirmed that the former session has ended.
  package var serverNotified: Bool?
  /// 10009 if it did not; otherwise nil.
  package var number: Int?
  /// The result of the server's script, after a login with a custom authenticator.
  package var info: ScriptInfo?

  package init(
    account: String? = nil, secondsLeft: Int64? = nil, serverNotified: Bool? = nil, info: ScriptInfo? = nil
  ) {
    self.account = account
    self.secondsLeft = secondsLeft
    self.serverNotified = serverNotified
    self.info = info
    number = serverNotified == false ? Self.logoutUnconfirmed : nil
  }

  /// Number of the error catalog for a logout of which the server was not notified.
  package static let logoutUnconfirmed = 10009

  enum CodingKeys: String, CodingKey {
    case account, number, info
    case secondsLeft = "seconds_left"
    case serverNotified = "server_notified"
  }
}

package struct CodeResponse: Codable, Sendable {
  package var account: String
  package var code: String
  /// The counter value of an HOTP code.
  package var counter: UInt64?
  /// The validity of a TOTP code, in seconds since 1970.
  package var validFrom: Int64?
  package var validUntil: Int64?

  /// - Parameter validity: of a TOTP code, in seconds since 1970.
  package init(account: String, code: String, counter: UInt64?, validity: Range<Int64>?) {
    self.account = account
    self.code = code
    self.counter = counter
    validFrom = validity?.lowerBound
    validUntil = validity?.upperBound
  }

  enum CodingKeys: String, CodingKey {
    case account, code, counter
    case validFrom = "valid_from"
    case validUntil = "valid_until"
  }
}

package struct RemovalResponse: Codable, Sendable {
  package var removed: String
  /// Whether the token server confirmed the removal.
  package var serverNotified: Bool
  /// 10003 if it did not; otherwise nil.
  package var number: Int?

  package init(removed: String, serverNotified: Bool) {
    self.removed = removed
    self.serverNotified = serverNotified
    number = serverNotified ? nil : 10003
  }

  enum CodingKeys: String, CodingKey {
    case removed, number
    case serverNotified = "server_notified"
  }
}

package struct FactoryResetResponse: Codable, Sendable, Equatable {
  /// All accounts that there were.
  package var removed: [String]
  /// Those that a token server may still list.
  package var notNotified: [String]

  package init(removed: [String], notNotified: [String]) {
    self.removed = removed
    self.notNotified = notNotified
  }

  enum CodingKeys: String, CodingKey {
    case removed
    case notNotified = "not_notified"
  }
}

package struct PushResponse: Codable, Sendable {
  package var account: String
  /// The message was received before; the store is unchanged.
  package var isKnown: Bool

  package init(account: String, isKnown: Bool) {
    self.account = account
    self.isKnown = isKnown
  }

  enum CodingKeys: String, CodingKey {
    case account
    case isKnown = "known"
  }
}

package struct Done: Codable, Sendable {
  package var done = true
  /// Why the action was ignored; nil if it may have had an effect.
  package var ignored: String?

  package init(ignored: String? = nil) { self.ignored = ignored }
}
