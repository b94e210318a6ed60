// SPDX-License-Identifier: Apache-2.0
package import Cryptography
import Logging
import ReferenceProtocol

/// Verifies PINs for logins, answers and PIN changes.
///
/// An attempt counts as a failure, durably, before the proof is checked. Only the verdict that the PIN was correct
/// resets the count, durably, before the verdict is sent. So a crash or a race does not give an extra guess, and a
/// repetition of the same attempt gets the same verdict.
package struct PINVerifier: Sendable {
  package let store: any RecordStore
  package let announcer: any Announcer
  package let clock: ServerClock
  /// The number of failures at which the user is deregistered.
  package let limit: Int
  private let keyedMutex = KeyedMutex()

  package init(store: any RecordStore, announcer: any Announcer, clock: ServerClock, limit: Int) {
    self.store = store
    self.announcer = announcer
    self.clock = clock
    self.limit = limit
  }

  /// The consequences of a verification, stored in the same transaction.
  package struct Verification: Sendable {
    /// The response to this attempt and its repetitions; nil if its purpose is gone and no response has to be repeated.
    package var verdict: StoredReply?
    package var effects = Effects()

    package init(verdict: StoredReply? = nil, effects: Effects = Effects()) {
      self.verdict = verdict
      self.effects = effects
    }
  }

  package enum VerificationError: Error, Equatable {
    /// The attempt's key was used for another request.
    case conflict
    case noPIN
    /// The profile was deleted, and possibly created again, before there was a verdict.
    case overtaken
  }

  /// While `body` runs, no other attempt on this profile is verified, and none of the profile's keys changes.
  package func serialized<Value: Sendable>(
    with profileID: ProfileID, on clientID: ClientID, _ body: @Sendable () async throws -> Value
  ) async throws -> Value {
    try await keyedMutex.withLock("\(clientID)/\(profileID)", body)
  }

  /// Verifies one attempt. The caller runs inside `serialized` and has found no stored verdict for the attempt.
  /// - Parameters:
  ///   - isRight: verifies the proof; called at most once.
  ///   - rule: runs in the database transaction of the verdict.
  package func verify(
    _ attempt: PINAttempt, isRight: (Ed25519.PublicKey) -> Bool,
    rule: @escaping @Sendable (any ServerRecords, PINVerificationOutcome) throws -> Verification
  ) async throws -> StoredReply? {
    let nowMs = clock.nowMs()
    let key: Ed25519.PublicKey
    switch try await store.write({ try $0.count(attempt, nowMs: nowMs) }) {
    case .counted(let publicKey): key = publicKey
    case .conflict: throw VerificationError.conflict
    case .nothingToJudge: throw VerificationError.noPIN
    }
    let isRight = isRight(key)
    let verified = try await store.write { [limit] records -> (PINVerificationOutcome, Verification)? in
      guard let finding = try records.conclude(attempt, isRight: isRight, limit: limit) else { return nil }
      var ruling = try rule(records, finding)
      if let verdict = ruling.verdict {
        try records.insert(verdict, key: attempt.key, clientID: attempt.clientID, nowMs: nowMs)
      }
      if case .limitReached = finding, let profile = try records.profile(attempt.profileID, on: attempt.clientID) {
        ruling.effects.add(try records.deleteProfile(profile.name, nowMs: nowMs))
      }
      return (finding, ruling)
    }
    guard let (finding, ruling) = verified else { throw VerificationError.overtaken }
    announcer.announce(ruling.effects)
    announcer.log.notice("profile \(attempt.profileID) on device \(attempt.clientID): \(describe(finding))")
    return ruling.verdict
  }

  private func describe(_ finding: PINVerificationOutcome) -> String {
    switch finding {
    case .right: "PIN right"
    case .wrong(let counts): "PIN wrong, \(counts.remainingFailureCount) of \(limit) attempts left"
    case .limitReached: "PIN wrong, no attempts left: user deregistered"
    }
  }
}
