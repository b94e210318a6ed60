import Cryptography
import GRDB
import Logging
import ReferenceProtocol

/// The one place where a PIN is judged, for logins, answers and PIN changes alike.
///
/// An attempt is a failure from the moment it is counted, which is on disk before anybody looks at what it proves; only
/// a verdict that it was right takes that back, and that is on disk before anybody is told. So no crash and no race
/// gives a guess away, and the same attempt again is told what it was told before.
struct PINJudge: Sendable {
  let store: Store
  let announcer: Announcer
  let clock: ServerClock
  /// Failures at which the user is deregistered.
  let limit: Int
  private let turnstile = Turnstile()

  init(store: Store, announcer: Announcer, clock: ServerClock, limit: Int) {
    self.store = store
    self.announcer = announcer
    self.clock = clock
    self.limit = limit
  }

  /// What follows from a finding, made durable with it.
  struct Ruling: Sendable {
    /// What is said to this attempt, now and again; nil if its purpose is gone and there is nothing to repeat.
    var verdict: Verdict?
    var effects = Effects()
  }

  enum Refusal: Error, Equatable {
    /// The key of the attempt was used for another.
    case conflict
    case noPIN
    /// The profile went away, and may have come again, before there was a verdict.
    case overtaken
  }

  /// Nobody else's attempt on this profile is judged, and none of its keys changes, while `body` runs.
  func alone<Value: Sendable>(
    with profileID: String, on clientID: String, _ body: @Sendable () async throws -> Value
  ) async throws -> Value {
    try await turnstile.alone("\(clientID)/\(profileID)", body)
  }

  /// The caller is `alone` with the profile and has found no verdict for the attempt.
  /// - Parameters:
  ///   - isRight: the one look at what the attempt proves.
  ///   - rule: runs in the database transaction of the verdict.
  func judge(
    _ attempt: PINAttempt, isRight: (Ed25519.PublicKey) -> Bool,
    rule: @escaping @Sendable (Database, PINFinding) throws -> Ruling
  ) async throws -> Verdict? {
    let nowMs = clock.nowMs()
    let key: Ed25519.PublicKey
    switch try await store.write({ try $0.count(attempt, nowMs: nowMs) }) {
    case .counted(let publicKey): key = publicKey
    case .conflict: throw Refusal.conflict
    case .nothingToJudge: throw Refusal.noPIN
    }
    let isRight = isRight(key)
    let judged = try await store.write { [limit] database -> (PINFinding, Ruling)? in
      guard let finding = try database.conclude(attempt, isRight: isRight, limit: limit) else { return nil }
      var ruling = try rule(database, finding)
      if let verdict = ruling.verdict {
        try database.insert(verdict, key: attempt.key, clientID: attempt.clientID, nowMs: nowMs)
      }
      if case .limitReached = finding, let profile = try database.profile(attempt.profileID, on: attempt.clientID) {
        ruling.effects.add(try database.deleteProfile(profile, nowMs: nowMs))
      }
      return (finding, ruling)
    }
    guard let (finding, ruling) = judged else { throw Refusal.overtaken }
    announcer.announce(ruling.effects)
    announcer.log.notice("profile \(attempt.profileID) on device \(attempt.clientID): \(describe(finding))")
    return ruling.verdict
  }

  private func describe(_ finding: PINFinding) -> String {
    switch finding {
    case .right: "PIN right"
    case .wrong(let counts): "PIN wrong, \(counts.remainingFailureCount) of \(limit) attempts left"
    case .limitReached: "PIN wrong, no attempts left: user deregistered"
    }
  }
}
