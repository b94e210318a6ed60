// SPDX-License-Identifier: Apache-2.0
package import Cryptography
import Logging
import ReferenceProtocol

/// Verifies PINs for logins, answers and PIN changes.
///
/// An attempt counts as a failure, durably, before the proof is checked. Only the reply that the PIN was correct
/// resets the count, durably, before it is sent. So a crash or a race does not give an extra guess, and a repetition of
/// the same attempt gets the same reply.
package struct PINAttemptVerifier: Sendable {
  package let store: any RecordStore
  package let announcer: any Announcer
  package let clock: ServerClock
  /// The number of failures at which the user is deregistered.
  package let limit: Int

  package init(store: any RecordStore, announcer: any Announcer, clock: ServerClock, limit: Int) {
    self.store = store
    self.announcer = announcer
    self.clock = clock
    self.limit = limit
  }

  package enum VerificationError: Error, Equatable {
    /// The attempt's key was used for another request.
    case conflict
    case noPIN
    /// The profile was deleted, and possibly created again, before there was a reply.
    case overtaken
  }

  /// While `body` runs, no other attempt on this profile is verified, and none of the profile's keys changes.
  package func serialized<Value: Sendable>(
    with profileID: ProfileID, on clientID: ClientID, _ body: @Sendable () async throws -> Value
  ) async throws -> Value {
    try await store.exclusively("pin/\(clientID)/\(profileID)", body)
  }

  /// Verifies one attempt. The caller runs inside `serialized` and has found no stored reply for the attempt.
  /// - Parameters:
  ///   - isRight: verifies the proof; called at most once.
  ///   - apply: runs in the database transaction that stores the reply.
  package func verify(
    _ attempt: PINAttempt, isRight: (Ed25519.PublicKey) -> Bool,
    apply: @escaping @Sendable (any ServerRecords, PINVerificationOutcome) throws -> AttemptConsequences
  ) async throws -> StoredReply? {
    let now = clock.now()
    let key: Ed25519.PublicKey
    switch try await store.write({ try $0.count(attempt, now: now) }) {
    case .counted(let publicKey): key = publicKey
    case .conflict: throw VerificationError.conflict
    case .noPIN: throw VerificationError.noPIN
    }
    let isRight = isRight(key)
    let verified = try await store.write { [limit] records -> (PINVerificationOutcome, AttemptConsequences)? in
      guard let outcome = try records.conclude(attempt, isRight: isRight, limit: limit) else { return nil }
      var consequences = try apply(records, outcome)
      // A denial may have stored its own reply with this key meanwhile. The attempt counts all the same.
      if let reply = consequences.reply, try records.storedReply(attempt.key, of: attempt.clientID) == nil {
        try records.insert(reply, key: attempt.key, clientID: attempt.clientID, now: now)
      }
      if case .limitReached = outcome, let profile = try records.profile(attempt.profileID, on: attempt.clientID) {
        consequences.effects.add(try records.deleteProfile(profile.name, now: now))
      }
      return (outcome, consequences)
    }
    guard let (outcome, consequences) = verified else { throw VerificationError.overtaken }
    announcer.announce(consequences.effects)
    ServerMetrics.count(outcome)
    announcer.deviceLog.about(attempt.clientID).notice(
      "profile \(attempt.profileID) on device \(attempt.clientID): \(describe(outcome))")
    return consequences.reply
  }

  private func describe(_ outcome: PINVerificationOutcome) -> String {
    switch outcome {
    case .right: "PIN correct"
    case .wrong(let counts): "PIN wrong, \(counts.remainingFailureCount) of \(limit) attempts left"
    case .limitReached: "PIN wrong, no attempts left: user deregistered"
    }
  }
}
