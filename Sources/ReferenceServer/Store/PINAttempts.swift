import Cryptography
import Foundation
import GRDB
import ReferenceProtocol

/// What is asked of a PIN once: an answer's proof, or an assertion.
struct PINAttempt: Sendable {
  let clientID: String
  let profileID: String
  /// The same key is the same attempt: an answer's `Idempotency-Key`, an assertion's purpose and `jti`.
  let key: String
  /// What stands for the request under that key.
  let requestHash: [UInt8]
}

enum PINFinding: Sendable, Equatable {
  case right
  case wrong(ProfileFailureCounts)
  /// Wrong once too often.
  case limitReached(ProfileFailureCounts)
}

/// The one counter of a profile. Whoever calls is alone with the profile (`PINJudge`).
extension Database {
  enum Count: Sendable {
    /// Counted, now or before a crash: to be judged by this key.
    case counted(Ed25519.PublicKey)
    /// The key was used for another request.
    case conflict
    /// There is no PIN to ask.
    case nothingToJudge
  }

  /// Counts the attempt as a failure, before anybody looks at it. An attempt that was counted and never judged is not
  /// counted again.
  func count(_ attempt: PINAttempt, nowMs: Int64) throws -> Count {
    guard let profile = try profile(attempt.profileID, on: attempt.clientID), !profile.isDeleted,
      let knowledge = profile.knowledge, knowledge.isActive
    else { return .nothingToJudge }
    let names: StatementArguments = [attempt.clientID, attempt.profileID, attempt.key]
    if let known = try row(
      "SELECT request_hash FROM pin_attempt WHERE client_id = ? AND profile_id = ? AND key = ?", names)
    {
      return try known.bytes("request_hash") == attempt.requestHash ? .counted(knowledge.publicKey) : .conflict
    }
    try run(
      "INSERT INTO pin_attempt (client_id, profile_id, key, request_hash, created_at_ms) VALUES (?, ?, ?, ?, ?)",
      names + [Data(attempt.requestHash), nowMs])
    try run(
      "UPDATE knowledge SET failures = failures + 1 WHERE client_id = ? AND profile_id = ?",
      [attempt.clientID, attempt.profileID])
    return .counted(knowledge.publicKey)
  }

  /// - Returns: nil if the attempt is not the profile's any more: it went away after the attempt was counted.
  func conclude(_ attempt: PINAttempt, isRight: Bool, limit: Int) throws -> PINFinding? {
    let owner: StatementArguments = [attempt.clientID, attempt.profileID]
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
    // Their count is gone with the rest; should they still come to be judged, they count anew.
    try run("DELETE FROM pin_attempt WHERE client_id = ? AND profile_id = ?", owner)
    return .right
  }
}
