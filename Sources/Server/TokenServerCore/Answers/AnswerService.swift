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

  /// Handles a signed and encrypted answer.
  /// - Returns: the response, which is durable.
  package func answer(_ arrival: ArrivedAnswer) async throws -> StoredReply {
    if let known = try await replay(arrival) { return known }
    let transaction = try await transaction(for: arrival)
    guard transaction.hasAttempts else { return try await end(arrival, transaction) }
    return try await serialized(transaction) {
      // Another copy of this answer may have been handled while this one waited for the lock.
      if let known = try await replay(arrival) { return known }
      return try await end(arrival, try await self.transaction(for: arrival))
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
  /// - Returns: the response, which is durable.
  package func deny(_ arrival: ArrivedAnswer) async throws -> StoredReply {
    if let known = try await replay(arrival) { return known }
    let transaction = try await transaction(for: arrival)
    _ = try await store.profile(transaction.profileID, of: arrival.clientID)
    let denial = try JSON.decode(Denial.self, from: arrival.body)
    note(denial.underlyingError, about: transaction)
    return try await record(.ending(.denied, denial.reason), of: arrival, for: transaction)
  }

  /// - Parameter underlyingError: the device's text about its denial.
  private func note(_ underlyingError: String?, about transaction: Transaction) {
    guard let underlyingError else { return }
    announcer.log.info("transaction \(transaction.id): denied because of \"\(underlyingError.sanitized)\"")
  }

  private func end(_ arrival: ArrivedAnswer, _ transaction: Transaction) async throws -> StoredReply {
    let profile = try await store.profile(transaction.profileID, of: arrival.clientID)
    let sealed = try JSON.decode(SealedAnswer.self, from: arrival.body).answer
    guard let (key, certificate) = try await keyring.correspondence(of: profile) else {
      throw DeviceAPIError(lacksKeysOf: profile)
    }
    switch try read(sealed, by: certificate, with: key, for: transaction) {
    case .success(.ending(let ending, let reason, let underlyingError)):
      note(underlyingError, about: transaction)
      return try await record(.ending(ending, reason), of: arrival, for: transaction)
    case .success(.proof(let proof, let claim)):
      guard transaction.authenticator != nil else {
        return try await record(proof, of: claim, in: arrival, for: transaction)
      }
      // A fallback: `serialized` has taken the locks of the authenticators, not that of the PIN.
      return try await pins.serialized(with: transaction.profileID, on: transaction.clientID) {
        try await record(proof, of: claim, in: arrival, for: transaction)
      }
    case .success(.authenticatorProof(let proof, let claim)):
      return try await record(proof, of: claim, in: arrival, for: transaction)
    case .failure(let refusal): return try await record(.invalid(refusal.why), of: arrival, for: transaction)
    }
  }

  private func read(
    _ sealed: String, by certificate: OpenPGPCertificate, with key: OpenPGPKey, for transaction: Transaction
  ) throws -> Result<AnswerVerifier.Reading, AnswerVerifier.AnswerError> {
    guard let message = bytes(base64: sealed) else { return .failure(.init(why: "the answer is not Base64")) }
    let plaintext: [UInt8]
    do { plaintext = try key.open(message, from: certificate, limit: 65_536) } catch {
      return .failure(.init(why: "the answer cannot be opened, or is not by the enrolled device"))
    }
    // The issuer name at the time of the request.
    let issuer = try JSON.decode(ApprovalRequest.self, from: transaction.request).iss
    return Result { () throws(AnswerVerifier.AnswerError) in
      try AnswerVerifier.read(plaintext, for: transaction, issuer: issuer)
    }
  }

  /// The transaction that the answer names. It must have been open when the answer arrived.
  private func transaction(for arrival: ArrivedAnswer) async throws -> Transaction {
    let transaction = try await store.transaction(arrival.transactionID, of: arrival.clientID)
    try transaction.requireOpen(at: arrival.arrivedAt)
    return transaction
  }

  /// The stored reply for the same answer.
  private func replay(_ arrival: ArrivedAnswer) async throws -> StoredReply? {
    try await store.read { try $0.storedReply(arrival.key, of: arrival.clientID) }?.repeated(for: arrival.hash)
  }
}
