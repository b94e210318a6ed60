// SPDX-License-Identifier: Apache-2.0
import Cryptography
import ReferenceProtocol

/// One PIN attempt: an answer's proof, or an assertion.
struct PINAttempt: Sendable {
  let clientID: String
  let profileID: String
  /// Attempts with the same key are the same attempt: an answer's `Idempotency-Key`, or an assertion's purpose and `jti`.
  let key: String
  /// The hash of the request under that key.
  let requestHash: [UInt8]
}

enum PINVerificationOutcome: Sendable, Equatable {
  case right
  case wrong(ProfileFailureCounts)
  /// The attempt that reached the limit of wrong PINs.
  case limitReached(ProfileFailureCounts)
}

/// The attempt counter of a profile. The caller must hold the profile's lock (`PINVerifier`).
extension Database {
  enum Count: Sendable {
    /// Counted, now or before a crash: to be verified with this key.
    case counted(Ed25519.PublicKey)
    /// The key was used for another request.
    case conflict
    /// The profile has no PIN.
    case nothingToJudge
  }

  /// Counts the attempt as a failure, before the proof is verified. An attempt that was counted and not verified is not
  /// counted again.
  func count(_ attempt: PINAttempt, nowMs: Int64) throws -> Count {
    guard let profile = try profile(attempt.profileID, on: attempt.clientID), !profile.isDeleted,
      let knowledge = profile.knowledge, knowledge.isActive
    else { return .nothingToJudge }
    let names: [any SQLParameter] = [attempt.clientID, attempt.profileID, attempt.key]
    if let known = try row(
      "SELECT request_hash FROM pin_attempt WHERE client_id = ? AND profile_id = ? AND key = ?", names)
    {
      return try known.bytes("request_hash") == attempt.requestHash ? .counted(knowledge.publicKey) : .conflict
    }
    try run(
      "INSERT INTO pin_attempt (client_id, profile_id, key, request_hash, created_at_ms) VALUES (?, ?, ?, ?, ?)",
      names + [attempt.requestHash, nowMs])
    try run(
      "UPDATE knowledge SET failures = failures + 1 WHERE client_id = ? AND profile_id = ?",
      [attempt.clientID, attempt.profileID])
    return .counted(knowledge.publicKey)
  }

  /// - Returns: nil if the attempt no longer belongs to the profile: the profile was deleted after the attempt was
  ///   counted.
  func conclude(_ attempt: PINAttempt, isRight: Bool, limit: Int) throws -> PINVerificationOutcome? {
    let owner: [any SQLParameter] = [attempt.clientID, attempt.profileID]
    let open = try run(
      "DELETE FROM pin_attempt WHERE client_id = ? AND profile_id = ? AND key = ?", owner + [attempt.key])
    guard open == 1, let knowledge = try profile(attempt.profileID, on: attempt.clientID)?.knowledge else {
      return nil
    }
    guard isRight else {
      let counts = knowledge.counts(of: attempt.profileID, limit: limit)
      return knowledge.failures < limit ? .wrong(counts) : .limitReached(counts)
    }
    try run("UPDATE knowledge SET failures = 0 WHERE client_id = ? AND profile_id = ?", owner)
    // Reset the counts of attempts without a verdict; if they are verified later, they are counted again.
    try run("DELETE FROM pin_attempt WHERE client_id = ? AND profile_id = ?", owner)
    return .right
  }
}
