// SPDX-License-Identifier: Apache-2.0
package import Cryptography
import Logging
package import ReferenceProtocol

package enum AuthenticatorOutcome: Sendable, Equatable {
  /// - Parameter info: the result of the script; nil without one.
  case right(CustomInfo?)
  /// Wrong; the authenticator may be tried again.
  case wrong(CustomInfo)
  /// Wrong; the authenticator is deregistered.
  case revoked(CustomInfo?, ServerConfiguration.Authenticator.Kind)
  /// The script could not be run; the attempt is not counted.
  case notRun(CustomInfo)
  /// The script was started and gave no result. It may have compared the data, so the attempt stays counted: otherwise
  /// an attacker could guess with a script that is slow, or fails, for wrong data.
  case noResult(CustomInfo)
}

/// Verifies proofs of authenticators other than the PIN, for logins and answers, in two durable steps: the attempt is
/// stored as a failure, then the proof is checked and the script runs, outside any database transaction; then the
/// reply is stored. A repetition of an attempt that was counted when the server was killed asks the script again
/// with the same attempt ID and is not counted again.
package struct AuthenticatorVerifier: Sendable {
  package let store: any RecordStore
  package let announcer: any Announcer
  package let clock: ServerClock
  package let configuration: ServerConfiguration
  package let scripts: any ScriptRunner

  package init(
    store: any RecordStore, announcer: any Announcer, clock: ServerClock, configuration: ServerConfiguration,
    scripts: any ScriptRunner
  ) {
    self.store = store
    self.announcer = announcer
    self.clock = clock
    self.configuration = configuration
    self.scripts = scripts
  }

  package enum VerificationError: Error, Equatable {
    /// The attempt's key was used for another request.
    case conflict
    case notRegistered
    /// The configuration does not offer the authenticator, or offers another kind under this identifier.
    case notOffered
    /// Too many scripts run.
    case busy
    /// The authenticator was deregistered before there was a reply.
    case overtaken
  }

  /// While `body` runs, no other attempt with this authenticator is verified. It does not exclude attempts with the
  /// PIN; a caller that needs both takes this lock first.
  package func serialized<Value: Sendable>(
    with name: AuthenticatorName, _ body: @Sendable () async throws -> Value
  ) async throws -> Value {
    try await store.exclusively("authenticator/\(name.profile.clientID)/\(name.profile.id)/\(name.id)", body)
  }

  /// The same for several authenticators of one profile.
  package func serialized<Value: Sendable>(
    with names: [AuthenticatorName], _ body: @Sendable () async throws -> Value
  ) async throws -> Value {
    // Each once and in one order, so that no caller waits for itself, and no two for each other.
    try await serialized(withSorted: Set(names).sorted { $0.id < $1.id }[...], body)
  }

  private func serialized<Value: Sendable>(
    withSorted names: ArraySlice<AuthenticatorName>, _ body: @Sendable () async throws -> Value
  ) async throws -> Value {
    guard let first = names.first else { return try await body() }
    return try await serialized(with: first) { try await serialized(withSorted: names.dropFirst(), body) }
  }

  /// Verifies one attempt. The caller runs inside `serialized` and has found no stored reply for the attempt.
  /// - Parameters:
  ///   - isProved: verifies the proof with the authenticator's key; called at most once.
  ///   - call: the input for the script of a custom authenticator.
  ///   - apply: runs in the database transaction that stores the reply.
  package func verify(
    _ attempt: AuthenticatorAttempt, isProved: (Ed25519.PublicKey) -> Bool, call: ScriptCall,
    apply: @escaping @Sendable (any ServerRecords, AuthenticatorOutcome) throws -> AttemptConsequences
  ) async throws -> (outcome: AuthenticatorOutcome, reply: StoredReply?) {
    let now = clock.now()
    let (record, counted) = try await count(attempt, now: now)
    var result: ScriptResult?
    let isProved = isProved(record.publicKey)
    if isProved, record.kind == .custom {
      var call = call
      (call.attemptID, call.registrationData) = (counted.attemptID, record.registrationData)
      guard let authenticator = configuration.offered(attempt.name.id, kind: .custom),
        let found = await scripts.run(call, of: authenticator)
      else {
        try await store.write { try $0.takeBack(attempt) }
        throw VerificationError.busy
      }
      result = found
    }
    let concluded = try await store.write {
      [configuration, result] records -> (AuthenticatorOutcome, AttemptConsequences)? in
      guard
        let outcome = try records.conclude(
          attempt, counted, isProved: isProved, result, configuration: configuration)
      else { return nil }
      var consequences = try apply(records, outcome)
      if case .revoked = outcome {
        consequences.effects.add(try records.deregister(attempt.name, byServer: true, now: now))
      }
      let clientID = attempt.name.profile.clientID
      // A denial may have stored its own reply with this key meanwhile. The attempt counts all the same.
      if let reply = consequences.reply, try records.storedReply(attempt.key, of: clientID) == nil {
        try records.insert(reply, key: attempt.key, clientID: clientID, now: now)
      }
      return (outcome, consequences)
    }
    guard let (outcome, consequences) = concluded else { throw VerificationError.overtaken }
    announcer.announce(consequences.effects)
    ServerMetrics.attempted(outcome.metricLabel, with: record.kind)
    let (name, profile) = (attempt.name.id, attempt.name.profile)
    announcer.deviceLog.about(profile.clientID).notice(
      "authenticator \(name) of profile \(profile.id) on device \(profile.clientID): \(outcome.logText)")
    return (outcome, consequences.reply)
  }

  private func count(
    _ attempt: AuthenticatorAttempt, now: Timestamp
  ) async throws -> (AuthenticatorRecord, CountedAuthenticatorAttempt) {
    switch try await store.write({ [configuration] in try $0.count(attempt, configuration, now: now) }) {
    case .counted(let record, let counted): return (record, counted)
    case .refused(let error): throw error
    }
  }
}

enum AuthenticatorAttemptCount: Sendable {
  case counted(AuthenticatorRecord, CountedAuthenticatorAttempt)
  case refused(AuthenticatorVerifier.VerificationError)
}

extension ServerRecords {
  fileprivate func count(
    _ attempt: AuthenticatorAttempt, _ configuration: ServerConfiguration, now: Timestamp
  ) throws -> AuthenticatorAttemptCount {
    let profile = attempt.name.profile
    guard try self.profile(profile.id, on: profile.clientID)?.isDeleted == false,
      let record = try authenticator(attempt.name), record.isActive
    else { return .refused(.notRegistered) }
    guard configuration.offered(record.name.id, kind: record.kind) != nil else { return .refused(.notOffered) }
    if let known = try countedAttempt(attempt) {
      let isSame = known.requestHash == attempt.requestHash && known.registrationID == record.registrationID
      return isSame ? .counted(record, known) : .refused(.conflict)
    }
    let counted = CountedAuthenticatorAttempt(
      requestHash: attempt.requestHash, attemptID: Random.uuid(), registrationID: record.registrationID)
    try insert(attempt, counted, now: now)
    return .counted(record, counted)
  }

  /// - Returns: nil if the authenticator was deregistered, and possibly registered again, after the attempt was
  ///   counted.
  fileprivate func conclude(
    _ attempt: AuthenticatorAttempt, _ counted: CountedAuthenticatorAttempt, isProved: Bool, _ result: ScriptResult?,
    configuration: ServerConfiguration
  ) throws -> AuthenticatorOutcome? {
    guard try delete(attempt), let record = try authenticator(attempt.name), record.isActive,
      record.registrationID == counted.registrationID
    else { return nil }
    guard isProved else { return .revoked(nil, record.kind) }
    guard let result else {
      try setFailures(0, of: attempt.name)
      return .right(nil)
    }
    switch result.outcome {
    case .accepted:
      try setFailures(0, of: attempt.name)
      return .right(result.info)
    case .notRun:
      try setFailures(max(0, record.failures - 1), of: attempt.name)
      return .notRun(result.info)
    case .mayRetry, .noResult:
      let limit = configuration.offered(attempt.name.id, kind: record.kind)?.maxFailures ?? 1
      guard record.failures < limit else { return .revoked(result.info, record.kind) }
      return result.outcome == .mayRetry ? .wrong(result.info) : .noResult(result.info)
    case .final: return .revoked(result.info, record.kind)
    }
  }

  /// Undoes the count of an attempt whose script was not asked.
  fileprivate func takeBack(_ attempt: AuthenticatorAttempt) throws {
    guard try delete(attempt), let record = try authenticator(attempt.name) else { return }
    try setFailures(max(0, record.failures - 1), of: attempt.name)
  }

  /// Deregisters an authenticator. Idempotent. Requests that need it, and for which there is neither another
  /// authenticator nor a fallback, fail.
  /// - Parameter byServer: whether the device must be notified.
  package func deregister(_ name: AuthenticatorName, byServer: Bool, now: Timestamp) throws -> Effects {
    var effects = Effects()
    guard try removeAuthenticator(name) else { return effects }
    for transaction in try openTransactions(of: name.profile.clientID, now: now)
    where transaction.profileID == name.profile.id && !transaction.hasFallback
      && transaction.authenticators.contains(where: { $0.authenticator == name.id })
    {
      guard try !hasRegistered(oneOf: transaction) else { continue }
      try end(transaction, .enrollmentRemoved, now: now).map { effects.add($0) }
    }
    if byServer {
      effects.notify(
        name.profile.clientID,
        DeviceEvent(.authenticatorRevoked, profileID: name.profile.id.text, authenticator: name.id))
    }
    return effects
  }
}

extension ServerRecords {
  /// Whether an authenticator of the request is registered.
  /// - Parameter lost: one that does not count.
  func hasRegistered(oneOf transaction: Transaction, without lost: String? = nil) throws -> Bool {
    let registered = try profile(transaction.profileID, on: transaction.clientID)?.authenticators.map(\.id) ?? []
    return transaction.authenticators.contains { $0.authenticator != lost && registered.contains($0.authenticator) }
  }
}

extension AuthenticatorOutcome {
  fileprivate var metricLabel: String {
    switch self {
    case .right: "right"
    case .wrong: "wrong"
    case .revoked: "deregistered"
    case .notRun: "not_run"
    case .noResult: "no_result"
    }
  }

  fileprivate var logText: String {
    func status(_ info: CustomInfo?) -> String { info.map { ", script status \($0.status)" } ?? "" }
    return switch self {
    case .right(let info): "right\(status(info))"
    case .wrong(let info): "wrong\(status(info))"
    case .revoked(let info, _): "wrong, deregistered\(status(info))"
    case .notRun(let info): "the script was not run\(status(info))"
    case .noResult(let info): "the script gave no result\(status(info))"
    }
  }
}
