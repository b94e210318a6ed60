// The bodies that are about a profile's PIN. Every assertion is a `KnowledgeAssertion` whose audience is the URL it is
// sent to.

/// What a PIN must be like. The server never sees one; the token enforces this.
public struct PINPolicyDescription: Codable, Sendable, Equatable {
  /// Exactly this many digits, 5 to 32.
  public var length: Int
  /// The longest run of one digit that is allowed (2 allows 11 but not 111); nil for any.
  public var maxRepeats: Int?
  /// Whether all digits may stand at one constant distance other than zero: 12345, 97531.
  public var sequencesAllowed: Bool
  /// PINs that everybody tries first.
  public var blockList: [String]
  /// Wrong attempts after which the user is deregistered, 1 to 10.
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

/// `POST /profiles/{pid}/pin`: activates `RT`; signed by its `KK` with the `pin_nonce` of the token response. `204`,
/// also when the same assertion has done it before.
public struct PINActivation: Codable, Sendable, Equatable {
  public var assertion: String

  public init(assertion: String) { self.assertion = assertion }
}

/// `POST /profiles/{pid}/pin-changes`, as the user, signed by the `KK` of the PIN that is to be replaced. Counts as an
/// attempt. `201` with a `PINChange`; a new change takes the place of one that was not committed.
public struct PINChangeRequest: Codable, Sendable, Equatable {
  public var assertion: String
  /// Base64 OpenPGP certificate, made for this exchange alone.
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

/// `POST /profiles/{pid}/pin-changes/{id}/commit`, as the device, signed by the *new* `KK` with the change's id as
/// nonce. `204`; the old `RT` is void from then on. Again: `204`. Does not count against the PIN.
public struct PINChangeCommit: Codable, Sendable, Equatable {
  public var assertion: String

  public init(assertion: String) { self.assertion = assertion }
}

/// `GET /profiles/{pid}/pin-changes/{id}`, as the device: which of two wrapped tokens survives a power cut.
public struct PINChangeStatus: Codable, Sendable, Equatable {
  public enum State: String, Codable, Sendable {
    case pending, committed
    /// Timed out, replaced, or never heard of: the former PIN stands.
    case void
  }

  public var state: State

  public init(state: State) { self.state = state }
}
