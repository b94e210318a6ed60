// SPDX-License-Identifier: Apache-2.0
package import Cryptography
package import ReferenceProtocol

/// One PIN attempt: an answer's proof, or an assertion.
package struct PINAttempt: Sendable {
  package let clientID: ClientID
  package let profileID: ProfileID
  /// Attempts with the same key are the same attempt: an answer's `Idempotency-Key`, or an assertion's purpose and
  /// `jti`.
  package let key: String
  /// The hash of the request under that key.
  package let requestHash: [UInt8]

  package init(clientID: ClientID, profileID: ProfileID, key: String, requestHash: [UInt8]) {
    self.clientID = clientID
    self.profileID = profileID
    self.key = key
    self.requestHash = requestHash
  }
}

package enum PINVerificationOutcome: Sendable, Equatable {
  case right
  case wrong(ProfileFailureCounts)
  /// The attempt that reached the limit of wrong PINs.
  case limitReached(ProfileFailureCounts)
}

/// The attempt counter of a profile. The caller must hold the profile's lock (`PINAttemptVerifier`).
extension ServerRecords {
  /// Counts the attempt as a failure, before the proof is verified. An attempt that was counted and not verified is not
  /// counted again.
  package func count(_ attempt: PINAttempt, now: Timestamp) throws -> PINAttemptCount {
    guard let profile = try profile(attempt.profileID, on: attempt.clientID), !profile.isDeleted,
      let knowledge = profile.knowledge, knowledge.isActive
    else { return .noPIN }
    if let known = try countedRequest(of: attempt) {
      return known == attempt.requestHash ? .counted(knowledge.publicKey) : .conflict
    }
    try insert(attempt, now: now)
    return .counted(knowledge.publicKey)
  }

  /// - Returns: nil if the attempt no longer belongs to the profile: the profile was deleted after the attempt was
  ///   counted.
  package func conclude(_ attempt: PINAttempt, isRight: Bool, limit: Int) throws -> PINVerificationOutcome? {
    guard try delete(attempt), let knowledge = try profile(attempt.profileID, on: attempt.clientID)?.knowledge else {
      return nil
    }
    guard isRight else {
      let counts = knowledge.counts(of: attempt.profileID, limit: limit)
      return knowledge.failures < limit ? .wrong(counts) : .limitReached(counts)
    }
    // Also resets the counts of attempts without a reply; if they are verified later, they are counted again.
    try clearAttempts(of: ProfileName(clientID: attempt.clientID, id: attempt.profileID))
    return .right
  }
}

package enum PINAttemptCount: Sendable {
  /// Counted, now or before a crash: to be verified with this key.
  case counted(Ed25519.PublicKey)
  /// The key was used for another request.
  case conflict
  /// The profile has no PIN.
  case noPIN
}
