// SPDX-License-Identifier: Apache-2.0

/// One line of `approval-token events`: a step of an authentication, or a change of a connection. The form is described
/// in docs/schemas/events.schema.json.
package struct EventLine: Codable, Equatable, Sendable {
  /// Changes when a member gets another meaning.
  package static let version = 1

  package var version = Self.version
  /// Increases by one with each event of the service, beginning with 1. A gap: the reader was too slow for the events
  /// in between.
  package var sequence: Int64
  /// Milliseconds since 1970, by the token's clock.
  package var atMilliseconds: Int64
  /// A name that docs/events.md explains, or one that a later release adds.
  package var event: String
  package var server: String?
  package var account: String?
  package var transaction: String?
  /// The identifier of an authenticator.
  package var authenticator: String?
  /// With `challenge`: what for.
  package var purpose: String?
  /// With `challenge`: what the panel asks for.
  package var kind: String?
  package var counts: Counts?
  /// With `challenge`: the identifiers of the authenticators that can be used instead.
  package var fallbacks: [String]?
  /// With `request-handled`: `accept` or `deny`.
  package var decision: String?
  /// With `deny`.
  package var denialReason: String?
  /// The result of the server's script for a custom authenticator.
  package var info: ScriptInfo?
  package var isServerNotified: Bool?
  /// Why something failed. With `challenge`: why the previous input did not count.
  package var failure: Failure?

  package init(_ event: String, sequence: Int64, atMilliseconds: Int64) {
    self.event = event
    self.sequence = sequence
    self.atMilliseconds = atMilliseconds
  }

  enum CodingKeys: String, CodingKey {
    case version, sequence, event, server, account, transaction, authenticator, purpose, kind, counts, fallbacks
    case decision, info, failure
    case atMilliseconds = "at_ms"
    case denialReason = "denial_reason"
    case isServerNotified = "server_notified"
  }

  /// The wrong attempts at what is asked for.
  package struct Counts: Codable, Equatable, Sendable {
    package var max: Int
    package var previous: Int
    package var remaining: Int

    package init(max: Int, previous: Int, remaining: Int) {
      (self.max, self.previous, self.remaining) = (max, previous, remaining)
    }

    enum CodingKeys: String, CodingKey {
      case max = "max_failure_count"
      case previous = "previous_failure_count"
      case remaining = "remaining_failure_count"
    }
  }

  package struct Failure: Codable, Equatable, Sendable {
    /// Number of the table in docs/handling-loop.md; nil for errors without a number.
    package var code: Int?
    package var reason: String
    package var info: ScriptInfo?
    /// Why an authenticator canceled; otherwise nil.
    package var underlyingError: String?
    /// True if the authenticator is no longer registered; otherwise nil.
    package var isAuthenticatorRevoked: Bool?

    package init(code: Int?, reason: String) { (self.code, self.reason) = (code, reason) }

    enum CodingKeys: String, CodingKey {
      case code, reason, info
      case underlyingError = "underlying_error"
      case isAuthenticatorRevoked = "authenticator_revoked"
    }
  }
}
