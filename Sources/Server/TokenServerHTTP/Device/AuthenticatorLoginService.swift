// SPDX-License-Identifier: Apache-2.0
import Cryptography
import Hummingbird
import ReferenceProtocol
import TokenServerCore
import TokenServerStore

/// The grants for authenticators other than the PIN: a user access token for a proof with the authenticator's own key
/// and, for a custom authenticator, data that its script accepts.
struct AuthenticatorLoginService: Sendable {
  let gate: DeviceGate
  let authenticators: AuthenticatorVerifier

  func logIn(_ login: TokenRequest.AuthenticatorLogin, on device: Device) async throws -> Response {
    let assertion = try self.assertion(login, on: device)
    let name = AuthenticatorName(
      profile: ProfileName(clientID: device.id, id: login.profileID), id: login.authenticator)
    let attempt = AuthenticatorAttempt(
      name: name, key: "authenticator-login/\(login.profileID)/\(login.authenticator)/\(assertion.claims.jti)",
      requestHash: gate.hasher.hash(login.assertion, for: .knowledgeAssertion))
    return try await authenticators.serialized(with: name) {
      let (known, profile, record) = try await gate.store.read { database in
        (
          try database.storedReply(attempt.key, of: device.id), try database.profile(login.profileID, on: device.id),
          try database.authenticator(name)
        )
      }
      guard let profile else { throw Self.refusal("There is no such profile.", .notFound) }
      guard !profile.isDeleted else { throw Self.deregistered(name) }
      guard let record, record.isActive else {
        throw Self.refusal("The authenticator is not registered.", .authenticatorDeregistered)
      }
      guard (record.kind == .biometric) == login.isBiometric else {
        throw Self.refusal("The authenticator needs another grant.", .invalidRequest)
      }
      if let known { return try await replay(known, to: attempt, assertion, record) }
      return try await verify(attempt, assertion, record.kind, call(login, assertion, name, profile.userID))
    }
  }

  private func assertion(
    _ login: TokenRequest.AuthenticatorLogin, on device: Device
  ) throws(ResponseError) -> KnowledgeAssertion {
    do {
      return try KnowledgeAssertion(
        parsing: login.assertion, clientID: device.id.text, profileID: login.profileID.text,
        audience: ServerMetadata(issuer: gate.origin.issuer).tokenEndpoint, now: gate.clock.nowSeconds,
        authenticator: login.authenticator,
        dataSHA256: login.isBiometric ? nil : SHA256.hash(login.data).base64URL)
    } catch .invalid(let what) { throw Self.refusal("The assertion's \(what) is wrong.", .invalidRequest) } catch {
      throw Self.refusal("The assertion's times are more than ten minutes off.", .invalidDatetime)
    }
  }

  private func call(
    _ login: TokenRequest.AuthenticatorLogin, _ assertion: KnowledgeAssertion, _ name: AuthenticatorName,
    _ userID: UserID
  ) -> ScriptCall {
    ScriptCall(
      .authenticate, for: .login, name, of: userID, issuer: gate.origin.issuer, data: login.data,
      nonce: assertion.claims.jti)
  }

  private func verify(
    _ attempt: AuthenticatorAttempt, _ assertion: KnowledgeAssertion, _ kind: ServerConfiguration.Authenticator.Kind,
    _ call: ScriptCall
  ) async throws -> Response {
    let token = newToken(attempt, kind)
    let now = gate.clock.now()
    let result: (outcome: AuthenticatorOutcome, reply: StoredReply?)
    do {
      result = try await authenticators.verify(attempt, isProved: assertion.isSigned, call: call) {
        records, outcome in
        switch outcome {
        case .notRun: return .init()
        case .right(let info):
          try token.insert(into: records, now: now)
          let body = info.map { JSON.encode($0) } ?? []
          return .init(reply: StoredReply(requestHash: attempt.requestHash, status: 200, body: body))
        case .wrong, .revoked, .noResult:
          let status = if case .noResult = outcome { 500 } else { 400 }
          return .init(
            reply: OAuthError(outcome).map {
              StoredReply(requestHash: attempt.requestHash, status: status, body: JSON.encode($0))
            })
        }
      }
    } catch let error as AuthenticatorVerifier.VerificationError { throw Self.refusal(error) }
    if case .notRun(let info) = result.outcome { throw Self.notRun(info) }
    guard let reply = result.reply, !reply.isSuccess else { return response(token, result.outcome.info) }
    return reply.response(error: Self.errorType)
  }

  /// Answers a repeated assertion whose response was lost; the script is not asked again.
  private func replay(
    _ reply: StoredReply, to attempt: AuthenticatorAttempt, _ assertion: KnowledgeAssertion,
    _ record: AuthenticatorRecord
  ) async throws -> Response {
    guard reply.requestHash == attempt.requestHash else {
      throw Self.refusal("The assertion's jti was used for another one.", .idempotencyConflict)
    }
    guard reply.isSuccess else { return reply.response(error: Self.errorType) }
    guard assertion.isSigned(by: record.publicKey) else {
      throw Self.refusal("The authenticator was registered again since.", .invalidRequest)
    }
    let token = newToken(attempt, record.kind)
    let now = gate.clock.now()
    try await gate.store.write { records in
      // The profile may be another user's by now.
      guard try records.authenticator(attempt.name)?.registrationID == record.registrationID else {
        throw Self.refusal("The authenticator was registered again since.", .invalidRequest)
      }
      try token.insert(into: records, now: now)
    }
    return response(token, try? JSON.decode(CustomInfo.self, from: reply.body))
  }

  private func newToken(
    _ attempt: AuthenticatorAttempt, _ kind: ServerConfiguration.Authenticator.Kind
  ) -> NewAccessToken {
    let id = attempt.name.id
    return NewAccessToken(
      for: attempt.name.profile.clientID, profileID: attempt.name.profile.id,
      by: kind == .biometric ? .biometric(authenticator: id) : .custom(authenticator: id), hasher: gate.hasher)
  }

  private func response(_ token: NewAccessToken, _ info: CustomInfo?) -> Response {
    var body = token.response
    body.customInfo = info
    return .json(body)
  }

  private static let errorType = "application/json;charset=UTF-8"

  private static func refusal(_ error: AuthenticatorVerifier.VerificationError) -> ResponseError {
    let problem = DeviceAPIError(error)
    guard error != .busy else {
      return ResponseError(
        .tooManyRequests, "slow_down", problem.detail, code: problem.slug.code, headers: [.retryAfter: "1"])
    }
    return refusal(problem.detail ?? "", problem.slug)
  }

  private static func notRun(_ info: CustomInfo) -> ResponseError {
    var error = ResponseError(
      .internalServerError, "server_error", "The script of the authenticator could not be run.",
      code: Problem.Slug.authenticatorError.code)
    error.body.customInfo = info
    return error
  }

  private static func deregistered(_ name: AuthenticatorName) -> ResponseError {
    ResponseError(
      .badRequest, "invalid_grant", "The user is deregistered.", code: Problem.Slug.userDeregistered.code,
      gone: Gone(clientID: name.profile.clientID, profileID: name.profile.id))
  }

  private static func refusal(_ why: String, _ slug: Problem.Slug) -> ResponseError {
    ResponseError(.badRequest, "invalid_grant", why, code: slug.code)
  }
}

extension AuthenticatorOutcome {
  fileprivate var info: CustomInfo? { if case .right(let info) = self { info } else { nil } }
}
