// SPDX-License-Identifier: Apache-2.0
import Hummingbird
import ReferenceProtocol
import TokenServerCore
import TokenServerStore

/// The `jwt-bearer` grant (RFC 7523 §2.1): issues a user access token for a proof that the PIN was typed. The refresh
/// token behind the proof is never sent.
struct LoginService: Sendable {
  let gate: DeviceGate
  let pins: PINAttemptVerifier

  func logIn(_ text: String, profileID: ProfileID, on device: Device) async throws -> Response {
    let assertion: KnowledgeAssertion
    do {
      assertion = try KnowledgeAssertion(
        parsing: text, clientID: device.id.text, profileID: profileID.text,
        audience: ServerMetadata(issuer: gate.origin.issuer).tokenEndpoint, now: gate.clock.nowSeconds)
    } catch .invalid(let what) { throw Self.refusal("The assertion's \(what) is wrong.", .invalidRequest) } catch {
      throw Self.refusal("The assertion's times are more than ten minutes off.", .invalidDatetime)
    }
    let attempt = PINAttempt(
      clientID: device.id, profileID: profileID, key: "login/\(profileID)/\(assertion.claims.jti)",
      requestHash: gate.hasher.hash(text, for: .knowledgeAssertion))
    return try await pins.serialized(with: profileID, on: device.id) {
      let (known, profile) = try await gate.store.read { database in
        (try database.storedReply(attempt.key, of: device.id), try database.profile(profileID, on: device.id))
      }
      if let known { return try await replay(known, to: attempt, assertion, profile) }
      guard let profile else { throw Self.refusal("There is no such profile.", .notFound) }
      guard !profile.isDeleted else { throw Self.deregistered(attempt) }
      return try await verify(attempt, assertion)
    }
  }

  private func verify(_ attempt: PINAttempt, _ assertion: KnowledgeAssertion) async throws -> Response {
    let token = NewAccessToken(for: attempt.clientID, profileID: attempt.profileID, by: .pin, hasher: gate.hasher)
    let now = gate.clock.now()
    let reply: StoredReply?
    do {
      reply = try await pins.verify(attempt, isRight: assertion.isSigned) { database, outcome in
        guard let error = OAuthError(outcome) else {
          try token.insert(into: database, now: now)
          return .init(reply: .success(attempt.requestHash))
        }
        return .init(reply: StoredReply(requestHash: attempt.requestHash, status: 400, body: JSON.encode(error)))
      }
    } catch PINAttemptVerifier.VerificationError.conflict { throw Self.anotherAssertion } catch PINAttemptVerifier
      .VerificationError
      .noPIN
    {
      throw Self.refusal("The profile has no PIN.", .actionNotAllowed)
    } catch PINAttemptVerifier.VerificationError.overtaken {
      throw Self.refusal("The profile changed meanwhile.", .actionNotAllowed)
    }
    guard let reply, !reply.isSuccess else { return .json(token.response) }
    return await gate.revocations.explained(reply, attempt).response(error: Self.errorType)
  }

  /// Answers a repeated assertion whose response was lost: a wrong PIN stays wrong; a correct PIN gets a token while it
  /// is still the current PIN.
  private func replay(
    _ reply: StoredReply, to attempt: PINAttempt, _ assertion: KnowledgeAssertion, _ profile: Profile?
  ) async throws -> Response {
    guard reply.requestHash == attempt.requestHash else { throw Self.anotherAssertion }
    guard reply.isSuccess else { return reply.response(error: Self.errorType) }
    guard let profile, !profile.isDeleted else { throw Self.deregistered(attempt) }
    guard let key = profile.knowledge?.publicKey, assertion.isSigned(by: key) else {
      throw Self.refusal("The PIN was changed since.", .invalidRequest)
    }
    let token = NewAccessToken(for: attempt.clientID, profileID: attempt.profileID, by: .pin, hasher: gate.hasher)
    let now = gate.clock.now()
    try await gate.store.write { records in
      // The profile may be another user's by now.
      guard let current = try records.profile(attempt.profileID, on: attempt.clientID), !current.isDeleted,
        let key = current.knowledge?.publicKey, assertion.isSigned(by: key)
      else { throw Self.deregistered(attempt) }
      try token.insert(into: records, now: now)
    }
    return .json(token.response)
  }

  private static let errorType = "application/json;charset=UTF-8"
  private static let anotherAssertion = refusal("The assertion's jti was used for another one.", .idempotencyConflict)

  private static func deregistered(_ attempt: PINAttempt) -> ResponseError {
    ResponseError(
      .badRequest, "invalid_grant", "The user is deregistered.", code: Problem.Slug.userDeregistered.code,
      gone: Gone(clientID: attempt.clientID, profileID: attempt.profileID))
  }

  private static func refusal(_ why: String, _ slug: Problem.Slug) -> ResponseError {
    ResponseError(.badRequest, "invalid_grant", why, code: slug.code)
  }
}
