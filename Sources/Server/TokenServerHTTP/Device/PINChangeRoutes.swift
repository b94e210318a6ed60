// SPDX-License-Identifier: Apache-2.0
import Cryptography
import Hummingbird
import Logging
import OpenPGP
import ReferenceProtocol
import TokenServerCore
import TokenServerStore

/// A PIN change in two phases, so that a device that loses power in between still has one usable refresh token: the
/// change starts with the old PIN, and the server switches when the new refresh token has signed.
struct PINChangeRoutes: Sendable {
  let gate: DeviceGate
  let keyring: ServerKeyring
  let pins: PINAttemptVerifier
  let log: DeviceLog

  func add(to router: Router<ServerContext>) {
    let base = "/device/v1/profiles/:pid/pin-changes"
    router.post(RouterPath(base)) { try await begin($0, $1) }
    router.post(RouterPath("\(base)/:change/commit")) { try await commit($0, $1) }
    router.get(RouterPath("\(base)/:change")) { try await status($0, $1) }
  }

  private func begin(_ request: Request, _ context: ServerContext) async throws -> Response {
    // First: a login counts when the body is there.
    let body = try await request.bytes()
    let caller = try await gate.admit(request)
    let profileID = ProfileID(try context.path("pid"))
    let audience = gate.origin.issuer + request.uri.path
    let order = try JSON.decode(PINChangeRequest.self, from: body)
    guard let recipient = NewKnowledgeKey.recipient(order.ephemeralCertificate) else {
      throw DeviceAPIError(.invalidRequest, "ephemeral_certificate is not a certificate of the profile v4-25519")
    }
    let clientID = caller.clientID
    return try await pins.serialized(with: profileID, on: clientID) {
      let assertion = try self.assertion(order.assertion, by: caller, for: profileID, audience: audience)
      let attempt = PINAttempt(
        clientID: clientID, profileID: profileID, key: "pin-change/\(profileID)/\(assertion.claims.jti)",
        requestHash: gate.hasher.hash(order.assertion, for: .knowledgeAssertion))
      let known = try await gate.store.read { try $0.storedReply(attempt.key, of: clientID) }
      if let known, !known.isSuccess || known.requestHash != attempt.requestHash {
        return try known.repeated(for: attempt.requestHash).response()
      }
      let profile = try await caller.profile(profileID, in: gate.store)
      try caller.requireUser(profileID)
      if known != nil {
        // The response was lost. Its refresh token cannot be encrypted again: start a new change, if the PIN is still
        // the same.
        guard let key = profile.knowledge?.publicKey, assertion.isSigned(by: key) else {
          throw DeviceAPIError(.alreadyHandled, "the PIN was changed since")
        }
      } else if let reply = try await verify(attempt, assertion), !reply.isSuccess {
        return await gate.revocations.explained(reply, attempt).response()
      }
      return .json(try await propose(to: recipient, for: profile), status: .created)
    }
  }

  private func verify(_ attempt: PINAttempt, _ assertion: KnowledgeAssertion) async throws -> StoredReply? {
    try await gate.count(attempt)
    let issuer = gate.origin.issuer
    do {
      return try await pins.verify(attempt, isRight: assertion.isSigned) { _, outcome in
        .init(
          reply: Problem(outcome, issuer: issuer).map { StoredReply($0, to: attempt.requestHash) }
            ?? .success(attempt.requestHash))
      }
    } catch let refusal as PINAttemptVerifier.VerificationError { throw DeviceAPIError(refusal) }
  }

  private func propose(to recipient: OpenPGPCertificate, for profile: Profile) async throws -> PINChange {
    let fresh = try NewKnowledgeKey(clientID: profile.clientID, profileID: profile.id, hasher: gate.hasher)
    let key =
      if let serverKey = profile.serverKey { try await keyring.key(serverKey) } else { try await keyring.shared() }
    let change = PINChange(
      changeID: Random.uuid(), sealedToken: try fresh.sealed(to: recipient, by: key),
      expiresInMs: StoredPINChange.lifetime.milliseconds)
    let now = gate.clock.now()
    let isStored = try await gate.store.write { database in
      guard try database.isCurrent(profile) else { return false }
      try database.insertPINChange(change.changeID, fresh, now: now)
      return true
    }
    guard isStored else { throw DeviceAPIError(.actionNotAllowed, "the profile changed meanwhile") }
    return change
  }

  private func commit(_ request: Request, _ context: ServerContext) async throws -> Response {
    let caller = try await gate.admit(request)
    let (profileID, changeID) = (ProfileID(try context.path("pid")), try context.path("change"))
    let audience = gate.origin.issuer + request.uri.path
    let text = try JSON.decode(PINChangeCommit.self, from: await request.bytes()).assertion
    return try await pins.serialized(with: profileID, on: caller.clientID) {
      let profile = try await caller.profile(profileID, in: gate.store)
      let assertion = try self.assertion(text, by: caller, for: profileID, audience: audience, nonce: changeID)
      let now = gate.clock.now()
      let change = try await gate.store.read { try $0.pinChange(changeID, of: profile) }
      switch change?.state(at: now) {
      case .committed: return .noContent
      case .void, nil: throw Self.noSuchChange
      case .pending: break
      }
      // Allow one attempt only: an open change must not be usable to guess the new PIN. A client that has just received
      // the refresh token can sign with it, and needs no second attempt.
      guard let change, assertion.isSigned(by: change.publicKey) else {
        try await gate.store.write { try $0.deletePINChange(changeID) }
        log.about(profile.clientID).notice(
          "profile \(profileID) on device \(profile.clientID): PIN change void, committed by another key")
        throw DeviceAPIError(.answerInvalid, "the assertion is not made with the new refresh token")
      }
      guard try await gate.store.write({ try $0.commitPINChange(changeID, of: profile) }) else {
        throw Self.noSuchChange
      }
      log.about(profile.clientID).info("profile \(profileID) on device \(profile.clientID): PIN changed")
      return .noContent
    }
  }

  private func status(_ request: Request, _ context: ServerContext) async throws -> Response {
    let caller = try await gate.admit(request)
    let profile = try await caller.profile(ProfileID(context.path("pid")), in: gate.store)
    let changeID = try context.path("change")
    let change = try await gate.store.read { try $0.pinChange(changeID, of: profile) }
    return .json(PINChangeStatus(state: change?.state(at: gate.clock.now()) ?? .void))
  }

  private static let noSuchChange = DeviceAPIError(
    .notFound, "there is no such PIN change; the former PIN stands")

  private func assertion(
    _ text: String, by caller: DeviceGate.Caller, for profileID: ProfileID, audience: String, nonce: String? = nil
  ) throws(DeviceAPIError) -> KnowledgeAssertion {
    do {
      return try KnowledgeAssertion(
        parsing: text, clientID: caller.clientID.text, profileID: profileID.text, audience: audience,
        now: gate.clock.nowSeconds, nonce: nonce)
    } catch { throw DeviceAPIError(error) }
  }
}
