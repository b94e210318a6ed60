// SPDX-License-Identifier: Apache-2.0
import Cryptography
import DisplayText
import Logging
import OpenPGP
package import ReferenceProtocol

/// Verifies and records approvals and denials. Each has an `Idempotency-Key`: the same key with the same body gets the
/// stored reply, regardless of the current state of the request.
package struct AnswerService: Sendable {
  package let store: any RecordStore
  package let keyring: ServerKeyring
  package let pins: PINAttemptVerifier
  package let authenticators: AuthenticatorVerifier
  package let revocations: Revocations
  package let announcer: any Announcer
  package let origin: Origin
  /// How long requests of the user are on hold after "not me"; zero disables the hold.
  package let notMeHold: Duration

  package init(
    store: any RecordStore, keyring: ServerKeyring, pins: PINAttemptVerifier, authenticators: AuthenticatorVerifier,
    revocations: Revocations, announcer: any Announcer, origin: Origin, notMeHold: Duration
  ) {
    self.store = store
    self.keyring = keyring
    self.pins = pins
    self.authenticators = authenticators
    self.revocations = revocations
    self.announcer = announcer
    self.origin = origin
    self.notMeHold = notMeHold
  }

  package enum Verification: Sendable {
    case ending(TransactionOutcome, DenialReason?)
    case invalid(String)
  }

  /// What the records have about an answer.
  package enum Found: Sendable {
    /// The stored reply to the same answer, or to another one with the same key.
    case reply(StoredReply)
    case request(AnsweredRequest)
  }

  /// Finds what an answer needs.
  package static func find(
    _ key: String, to transactionID: String, of clientID: ClientID, at arrivedAt: Timestamp,
    in records: any ServerRecords
  ) throws -> Found {
    if let reply = try records.storedReply(key, of: clientID) { return .reply(reply) }
    let transaction = try records.transaction(transactionID, of: clientID)
    try transaction.requireOpen(at: arrivedAt)
    return .request(
      AnsweredRequest(
        transaction: transaction, content: try transaction.content(),
        profile: try records.profile(transaction.profileID, of: clientID)))
  }

  /// Handles a signed and encrypted answer.
  /// - Parameter found: what `find` has found for it when it arrived.
  /// - Returns: the response, which is durable.
  package func answer(_ arrival: ArrivedAnswer, _ found: Found) async throws -> StoredReply {
    switch found {
    case .reply(let known): return try known.repeated(for: arrival.hash)
    case .request(let request):
      guard request.transaction.hasAttempts else { return try await end(arrival, request) }
      return try await serialized(request.transaction) {
        // Another copy of this answer may have been handled while this one waited for the lock.
        switch try await find(arrival) {
        case .reply(let known): return try known.repeated(for: arrival.hash)
        case .request(let request): return try await end(arrival, request)
        }
      }
    }
  }

  private func find(_ arrival: ArrivedAnswer) async throws -> Found {
    try await store.read { records in
      try Self.find(
        arrival.key, to: arrival.transactionID, of: arrival.clientID, at: arrival.arrivedAt, in: records)
    }
  }

  /// While `body` runs, no other attempt is verified that could change the transaction's nonce.
  private func serialized(
    _ transaction: Transaction, _ body: @Sendable () async throws -> StoredReply
  ) async throws -> StoredReply {
    let names = transaction.authenticators.map { transaction.name(of: $0.authenticator) }
    guard !names.isEmpty else {
      return try await pins.serialized(with: transaction.profileID, on: transaction.clientID, body)
    }
    return try await authenticators.serialized(with: names, body)
  }

  /// Handles a denial without keys.
  /// - Parameter found: what `find` has found for it when it arrived.
  /// - Returns: the response, which is durable.
  package func deny(_ arrival: ArrivedAnswer, _ found: Found) async throws -> StoredReply {
    switch found {
    case .reply(let known): return try known.repeated(for: arrival.hash)
    case .request(let request):
      let denial = try JSON.decode(Denial.self, from: arrival.body)
      note(denial.underlyingError, about: request.transaction)
      return try await record(.ending(.denied, denial.reason), of: arrival, for: request)
    }
  }

  /// - Parameter underlyingError: the device's text about its denial.
  private func note(_ underlyingError: String?, about transaction: Transaction) {
    guard let underlyingError else { return }
    announcer.log.info("transaction \(transaction.id): denied because of \"\(underlyingError.sanitized)\"")
  }

  private func end(_ arrival: ArrivedAnswer, _ request: AnsweredRequest) async throws -> StoredReply {
    let (transaction, profile) = (request.transaction, request.profile)
    let sealed = try JSON.decode(SealedAnswer.self, from: arrival.body).answer
    guard let (key, certificate) = try await keyring.correspondence(of: profile) else {
      throw DeviceAPIError(lacksKeysOf: profile)
    }
    switch read(sealed, by: certificate, with: key, for: request) {
    case .success(.ending(let ending, let reason, let underlyingError)):
      note(underlyingError, about: transaction)
      return try await record(.ending(ending, reason), of: arrival, for: request)
    case .success(.proof(let proof, let claim)):
      guard transaction.authenticator != nil else {
        return try await record(proof, of: claim, in: arrival, for: request)
      }
      // A fallback: `serialized` has taken the locks of the authenticators, not that of the PIN.
      return try await pins.serialized(with: transaction.profileID, on: transaction.clientID) {
        try await record(proof, of: claim, in: arrival, for: request)
      }
    case .success(.authenticatorProof(let proof, let claim)):
      return try await record(proof, of: claim, in: arrival, for: request)
    case .failure(let refusal): return try await record(.invalid(refusal.why), of: arrival, for: request)
    }
  }

  private func read(
    _ sealed: String, by certificate: OpenPGPCertificate, with key: OpenPGPKey, for request: AnsweredRequest
  ) -> Result<AnswerVerifier.Reading, AnswerVerifier.AnswerError> {
    guard let message = bytes(base64: sealed) else { return .failure(.init(why: "the answer is not Base64")) }
    let plaintext: [UInt8]
    do { plaintext = try key.open(message, from: certificate, limit: 65_536) } catch {
      return .failure(.init(why: "the answer cannot be opened, or is not by the enrolled device"))
    }
    return Result { () throws(AnswerVerifier.AnswerError) in
      try AnswerVerifier.read(plaintext, for: request.transaction, request.content)
    }
  }
}
