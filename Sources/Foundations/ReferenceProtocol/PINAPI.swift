// SPDX-License-Identifier: Apache-2.0

// The bodies of requests about a profile's PIN. Every assertion is a `KnowledgeAssertion` whose audience is the
// request's URL.

/// The rules for a PIN. The token enforces them; the server never receives a PIN.
public struct PINPolicyDescription: Codable, Sendable, Equatable {
  /// The exact number of digits, 5 to 32.
  public var length: Int
  /// The maximum number of equal digits in a row (2 allows 11 but not 111); nil for no limit.
  public var maxRepeats: Int?
  /// Whether PINs are allowed whose digits have one constant difference other than zero, such as 12345 and 97531.
  public var sequencesAllowed: Bool
  /// Common PINs that are not allowed.
  public var blockList: [String]
  /// The attempt limit: the number of wrong attempts after which the user is deregistered, 1 to 10.
  public var maxFailureCount: Int

  enum CodingKeys: String, CodingKey {
    case length
    case maxRepeats = "max_repeats"
    case sequencesAllowed = "sequences_allowed"
    case blockList = "block_list"
    case maxFailureCount = "max_failure_count"
  }

  public init(length: Int, maxRepeats: Int?, sequencesAllowed: Bool, blockList: [String], maxFailureCount: Int) {
    self.length = length
    self.maxRepeats = maxRepeats
    self.sequencesAllowed = sequencesAllowed
    self.blockList = blockList
    self.maxFailureCount = maxFailureCount
  }
}

public struct ProfileFailureCounts: Codable, Sendable, Equatable {
  public var profileID: String
  public var maxFailureCount: Int
  public var previousFailureCount: Int
  public var remainingFailureCount: Int

  enum CodingKeys: String, CodingKey {
    case profileID = "profile_id"
    case maxFailureCount = "max_failure_count"
    case previousFailureCount = "previous_failure_count"
    case remainingFailureCount = "remaining_failure_count"
  }

  public init(profileID: String, max: Int, previous: Int) {
    self.profileID = profileID
    maxFailureCount = max
    previousFailureCount = previous
    remainingFailureCount = max - previous
  }
}

/// `POST /profiles/{pid}/pin`: activates `RT`. The assertion is signed by its `KK` with the `pin_nonce` of the token
/// response. `204`; idempotent for the same assertion.
public struct PINActivation: Codable, Sendable, Equatable {
  public var assertion: String

  public init(assertion: String) { self.assertion = assertion }
}

/// `POST /profiles/{pid}/pin-changes`, as the user, signed by the `KK` of the current PIN. Counts as an attempt. `201`
/// with a `PINChange`, which replaces an uncommitted change.
public struct PINChangeRequest: Codable, Sendable, Equatable {
  public var assertion: String
  /// Base64 OpenPGP certificate, created for this exchange.
  public var ephemeralCertificate: String

  enum CodingKeys: String, CodingKey {
    case assertion
    case ephemeralCertificate = "ephemeral_certificate"
  }

  public init(assertion: String, ephemeralCertificate: String) {
    self.assertion = assertion
    self.ephemeralCertificate = ephemeralCertificate
  }
}

public struct PINChange: Codable, Sendable, Equatable {
  public var changeID: String
  /// Base64 OpenPGP message with the new `RT`, signed by the profile's server key.
  public var sealedToken: String
  public var expiresInMs: Int64

  enum CodingKeys: String, CodingKey {
    case changeID = "change_id"
    case sealedToken = "sealed_token"
    case expiresInMs = "expires_in_ms"
  }

  public init(changeID: String, sealedToken: String, expiresInMs: Int64) {
    self.changeID = changeID
    self.sealedToken = sealedToken
    self.expiresInMs = expiresInMs
  }
}

/// `POST /profiles/{pid}/pin-changes/{id}/commit`, as the device, signed by the *new* `KK` with the change's ID as
/// nonce. `204`; the old `RT` is then void. Idempotent. Does not count as a PIN attempt.
public struct PINChangeCommit: Codable, Sendable, Equatable {
  public var assertion: String

  public init(assertion: String) { self.assertion = assertion }
}

/// `GET /profiles/{pid}/pin-changes/{id}`, as the device: reports after a crash which of two encrypted tokens is valid.
public struct PINChangeStatus: Codable, Sendable, Equatable {
  public enum State: String, Codable, Sendable {
    case pending, committed
    /// Expired, replaced or unknown: the previous PIN stays valid.
    case void
  }

  public var state: State

  public init(state: State) { self.state = state }
}
