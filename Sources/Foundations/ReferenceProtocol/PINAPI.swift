// SPDX-License-Identifier: Apache-2.0

// The bodies of requests about a profile's PIN. Every assertion is a `KnowledgeAssertion` whose audience is the
// request's URL.

/// The rules for a PIN. The token enforces them; the server never receives a PIN.
package struct PINPolicyDescription: Codable, Sendable, Equatable {
  /// The maximum number of entries of `blockList`; a token refuses a policy with more.
  package static let longestBlockList = 10_000

  /// The exact number of digits, 5 to 32.
  package var length: Int
  /// The maximum number of equal digits in a row (2 allows 11 but not 111); nil for no limit.
  package var maxRepeats: Int?
  /// Whether PINs are allowed whose digits have one constant difference other than zero, such as 12345 and 97531.
  package var sequencesAllowed: Bool
  /// Common PINs that are not allowed.
  package var blockList: [String]
  /// The attempt limit: the number of wrong attempts after which the user is deregistered, 1 to 10.
  package var maxFailureCount: Int

  enum CodingKeys: String, CodingKey {
    case length
    case maxRepeats = "max_repeats"
    case sequencesAllowed = "sequences_allowed"
    case blockList = "block_list"
    case maxFailureCount = "max_failure_count"
  }

  package init(length: Int, maxRepeats: Int?, sequencesAllowed: Bool, blockList: [String], maxFailureCount: Int) {
    self.length = length
    self.maxRepeats = maxRepeats
    self.sequencesAllowed = sequencesAllowed
    self.blockList = blockList
    self.maxFailureCount = maxFailureCount
  }
}

package struct ProfileFailureCounts: Codable, Sendable, Equatable {
  package var profileID: String
  package var maxFailureCount: Int
  package var previousFailureCount: Int
  package var remainingFailureCount: Int

  enum CodingKeys: String, CodingKey {
    case profileID = "profile_id"
    case maxFailureCount = "max_failure_count"
    case previousFailureCount = "previous_failure_count"
    case remainingFailureCount = "remaining_failure_count"
  }

  package init(profileID: String, max: Int, previous: Int) {
    self.profileID = profileID
    maxFailureCount = max
    previousFailureCount = previous
    remainingFailureCount = max - previous
  }
}

/// `POST /profiles/{pid}/pin`: activates `RT`. The assertion is signed by its `KK` with the `pin_nonce` of the token
/// response. `204`; idempotent for the same assertion.
package struct PINActivation: Codable, Sendable, Equatable {
  package var assertion: String

  package init(assertion: String) { self.assertion = assertion }
}

/// `POST /profiles/{pid}/pin-changes`, as the user, signed by the `KK` of the current PIN. Counts as an attempt. `201`
/// with a `PINChange`, which replaces an uncommitted change.
package struct PINChangeRequest: Codable, Sendable, Equatable {
  package var assertion: String
  /// Base64 OpenPGP certificate, created for this exchange.
  package var ephemeralCertificate: String

  enum CodingKeys: String, CodingKey {
    case assertion
    case ephemeralCertificate = "ephemeral_certificate"
  }

  package init(assertion: String, ephemeralCertificate: String) {
    self.assertion = assertion
    self.ephemeralCertificate = ephemeralCertificate
  }
}

package struct PINChange: Codable, Sendable, Equatable {
  package var changeID: String
  /// Base64 OpenPGP message with the new `RT`, signed by the profile's server key.
  package var sealedToken: String
  package var expiresInMs: Int64

  enum CodingKeys: String, CodingKey {
    case changeID = "change_id"
    case sealedToken = "sealed_token"
    case expiresInMs = "expires_in_ms"
  }

  package init(changeID: String, sealedToken: String, expiresInMs: Int64) {
    self.changeID = changeID
    self.sealedToken = sealedToken
    self.expiresInMs = expiresInMs
  }
}

/// `POST /profiles/{pid}/pin-changes/{id}/commit`, as the device, signed by the *new* `KK` with the change's ID as
/// nonce. `204`; the old `RT` is then void. Idempotent. Does not count as a PIN attempt.
package struct PINChangeCommit: Codable, Sendable, Equatable {
  package var assertion: String

  package init(assertion: String) { self.assertion = assertion }
}

/// `GET /profiles/{pid}/pin-changes/{id}`, as the device: reports after a crash which of two encrypted tokens is valid.
package struct PINChangeStatus: Codable, Sendable, Equatable {
  package enum State: String, Codable, Sendable {
    case pending, committed
    /// Expired, replaced or unknown: the previous PIN stays valid.
    case void
  }

  package var state: State

  package init(state: State) { self.state = state }
}
