// SPDX-License-Identifier: Apache-2.0
import Cryptography
import Hummingbird
import OpenPGP
import ReferenceProtocol

/// The routes for approvals and denials. Each request carries an `Idempotency-Key`: the same key with the same body
/// gets the stored verdict, regardless of the current state of the request.
struct AnswerRoutes: Sendable {
  let gate: DeviceGate
  let keyring: ServerKeyring
  let pins: PINVerifier
  let announcer: Announcer
  /// How long requests of the user are on hold after "not me", in milliseconds; 0 disables the hold.
  let notMeHoldMs: Int64

  func add(to router: Router<ServerContext>) {
    router.post("/device/v1/requests/:tid/answers") { try await answer(ArrivedAnswer($0, $1, gate)) }
    router.post("/device/v1/requests/:tid/denials") { try await deny(ArrivedAnswer($0, $1, gate)) }
  }

  enum Verification: Sendable {
    case ending(TransactionOutcome, DenialReason?)
    case invalid(String)
  }

  private func answer(_ arrival: ArrivedAnswer) async throws -> Response {
    if let known = try await replay(arrival) { return known }
    let transaction = try await transaction(for: arrival)
    guard transaction.method == .pushWithPIN else { return try await end(arrival, transaction) }
    return try await pins.serialized(with: transaction.profileID, on: transaction.clientID) {
      // Another copy of this answer may have been handled while this one waited for the lock.
      if let known = try await replay(arrival) { return known }
      return try await end(arrival, try await self.transaction(for: arrival))
    }
  }

  private func deny(_ arrival: ArrivedAnswer) async throws -> Response {
    if let known = try await replay(arrival) { return known }
    let transaction = try await transaction(for: arrival)
    _ = try await arrival.caller.profile(transaction.profileID, in: gate.store)
    let reason = try JSON.decode(Denial.self, from: arrival.body).reason
    return try await record(.ending(.denied, reason), of: arrival, for: transaction)
  }

  private func end(_ arrival: ArrivedAnswer, _ transaction: Transaction) async throws -> Response {
    let profile = try await arrival.caller.profile(transaction.profileID, in: gate.store)
    let sealed = try JSON.decode(SealedAnswer.self, from: arrival.body).answer
    guard let (key, certificate) = try await keyring.correspondence(of: profile) else {
      throw DeviceAPIError(lacksKeysOf: profile)
    }
    switch try read(sealed, by: certificate, with: key, for: transaction) {
    case .success(.ending(let ending, let reason)):
      return try await record(.ending(ending, reason), of: arrival, for: transaction)
    case .success(.proof(let proof, let claim)):
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
    let transaction = try await gate.transaction(arrival.transactionID, of: arrival.caller)
    try transaction.requireOpen(at: arrival.atMs)
    return transaction
  }

  /// The stored verdict for the same answer.
  private func replay(_ arrival: ArrivedAnswer) async throws -> Response? {
    let clientID = arrival.caller.device.id
    return try await gate.store.read { try $0.verdict(arrival.key, of: clientID) }?.response(to: arrival.hash)
  }
}
