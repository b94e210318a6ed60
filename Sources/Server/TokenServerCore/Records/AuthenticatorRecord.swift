// SPDX-License-Identifier: Apache-2.0
package import Cryptography
package import ReferenceProtocol

/// The name of an authenticator of a profile.
package struct AuthenticatorName: Sendable, Hashable {
  package let profile: ProfileName
  /// The identifier in the configuration.
  package let id: String

  package init(profile: ProfileName, id: String) {
    self.profile = profile
    self.id = id
  }
}

/// An authenticator of a profile: the public half of its own key, which the device derives from the authenticator's
/// own refresh token.
package struct AuthenticatorRecord: Sendable {
  /// How long a registration may stay without its activation.
  package static let pendingFor = Duration.seconds(600)
  /// How long a refused registration counts toward the limit of failures.
  package static let refusalCountsFor = Duration.seconds(3600)

  /// The start of the keys under which the verdicts of its registrations are stored.
  package static func registrationKeys(of name: AuthenticatorName) -> String {
    "authenticator/\(name.profile.id)/\(name.id)/"
  }

  package let name: AuthenticatorName
  package let kind: ServerConfiguration.Authenticator.Kind
  /// The `Idempotency-Key` of the registration.
  package let registrationID: String
  package let publicKey: Ed25519.PublicKey
  package let isActive: Bool
  /// The data that the registration script returned.
  package let registrationData: String?
  /// Attempts since the last success.
  package let failures: Int
  package let proposedAt: Timestamp

  package init(
    name: AuthenticatorName, kind: ServerConfiguration.Authenticator.Kind, registrationID: String,
    publicKey: Ed25519.PublicKey, isActive: Bool, registrationData: String?, failures: Int, proposedAt: Timestamp
  ) {
    self.name = name
    self.kind = kind
    self.registrationID = registrationID
    self.publicKey = publicKey
    self.isActive = isActive
    self.registrationData = registrationData
    self.failures = failures
    self.proposedAt = proposedAt
  }

  package func hasExpired(at now: Timestamp) -> Bool { !isActive && now >= proposedAt + Self.pendingFor }

  package func state(at now: Timestamp) -> AuthenticatorRegistrationStatus.State {
    isActive ? .registered : hasExpired(at: now) ? .void : .pending
  }
}

/// An authenticator that is registered for a profile.
package struct RegisteredAuthenticator: Sendable, Hashable {
  package let id: String
  package let kind: ServerConfiguration.Authenticator.Kind

  package init(id: String, kind: ServerConfiguration.Authenticator.Kind) {
    self.id = id
    self.kind = kind
  }
}

package protocol AuthenticatorRecords {
  /// Finds pending ones too.
  func authenticator(_ name: AuthenticatorName) throws -> AuthenticatorRecord?
  /// Replaces a pending one.
  /// - Returns: false if it is registered, which is kept.
  func propose(_ authenticator: NewAuthenticator, now: Timestamp) throws -> Bool
  /// - Returns: false if this registration is gone.
  func activate(_ name: AuthenticatorName, registrationID: String) throws -> Bool
  /// - Returns: false if there is none.
  func removeAuthenticator(_ name: AuthenticatorName) throws -> Bool
  func setFailures(_ failures: Int, of name: AuthenticatorName) throws

  /// The number of registrations that the script has refused since a time.
  func refusedRegistrations(of name: AuthenticatorName, since: Timestamp) throws -> Int

  /// An attempt that was counted and not concluded.
  func countedAttempt(_ attempt: AuthenticatorAttempt) throws -> CountedAuthenticatorAttempt?
  /// Stores the attempt and, if the authenticator is registered, adds one failure to it. Drops attempts beyond
  /// `AuthenticatorAttempt.mostOpen`.
  func insert(_ attempt: AuthenticatorAttempt, _ counted: CountedAuthenticatorAttempt, now: Timestamp) throws
  /// - Returns: false if there was no such attempt.
  func delete(_ attempt: AuthenticatorAttempt) throws -> Bool
}

/// A registration that is proposed to a device.
package struct NewAuthenticator: Sendable {
  package let name: AuthenticatorName
  package let kind: ServerConfiguration.Authenticator.Kind
  package let registrationID: String
  package let key: NewKnowledgeKey
  package let registrationData: String?

  package init(
    name: AuthenticatorName, kind: ServerConfiguration.Authenticator.Kind, registrationID: String,
    key: NewKnowledgeKey, registrationData: String?
  ) {
    self.name = name
    self.kind = kind
    self.registrationID = registrationID
    self.key = key
    self.registrationData = registrationData
  }
}

/// One attempt with an authenticator: an answer, a login, or the registration of a custom authenticator.
package struct AuthenticatorAttempt: Sendable {
  /// The maximum number of attempts of one authenticator that are stored without their conclusion; older ones are
  /// dropped, and stay counted.
  package static let mostOpen = 16

  package let name: AuthenticatorName
  /// Attempts with the same key are the same attempt.
  package let key: String
  /// The hash of the request under that key: its input.
  package let requestHash: [UInt8]

  package init(name: AuthenticatorName, key: String, requestHash: [UInt8]) {
    self.name = name
    self.key = key
    self.requestHash = requestHash
  }
}

/// What is stored of an attempt before its script runs.
package struct CountedAuthenticatorAttempt: Sendable, Equatable {
  package let requestHash: [UInt8]
  /// The identifier for the script; the same if the script is asked again after a crash.
  package let attemptID: String
  package let registrationID: String

  package init(requestHash: [UInt8], attemptID: String, registrationID: String) {
    self.requestHash = requestHash
    self.attemptID = attemptID
    self.registrationID = registrationID
  }
}
