// SPDX-License-Identifier: Apache-2.0
import Cryptography
import Hummingbird
import Logging
import OpenPGP
import ReferenceProtocol
import TokenServerCore
import TokenServerStore

/// Registers authenticators in two phases, so that a device that loses power in between has no half-registered one: the
/// registration delivers the authenticator's own refresh token, the activation proves that the device can use it.
struct AuthenticatorRegistrationService: Sendable {
  let gate: DeviceGate
  let keyring: ServerKeyring
  let pins: PINAttemptVerifier
  let authenticators: AuthenticatorVerifier

  static let badData = DeviceAPIError(
    .invalidRequest, "data must be Base64 of at most \(AuthenticatorClaim.largestData) bytes")

  private static let tooManyRefused = DeviceAPIError(
    .rateLimited, "the script has refused too many registrations of this authenticator",
    header: .retryAfter(seconds: Int(AuthenticatorRecord.refusalCountsFor.components.seconds)))

  /// One registration as received.
  struct Order: Sendable {
    let name: AuthenticatorName
    /// The `Idempotency-Key`.
    let id: String
    /// The key of the stored reply.
    let key: String
    let requestHash: [UInt8]
    let assertion: String?
    let audience: String
    let recipient: OpenPGPCertificate
    let data: [UInt8]
  }

  func register(
    _ name: AuthenticatorName, _ body: [UInt8], id: String, audience: String, caller: DeviceGate.Caller
  ) async throws -> Response {
    let content = try JSON.decode(AuthenticatorRegistrationRequest.self, from: body)
    guard let recipient = NewKnowledgeKey.recipient(content.ephemeralCertificate) else {
      throw DeviceAPIError(.invalidRequest, "ephemeral_certificate is not a certificate of the profile v4-25519")
    }
    guard let data = CustomData.parse(content.data) else { throw Self.badData }
    let order = Order(
      name: name, id: id, key: AuthenticatorRecord.registrationKeys(of: name) + id,
      requestHash: gate.hasher.hash(String(decoding: body, as: UTF8.self), for: .knowledgeAssertion),
      assertion: content.assertion, audience: audience, recipient: recipient, data: data)
    return try await authenticators.serialized(with: name) {
      let profile = try await caller.profile(name.profile.id, in: gate.store)
      try caller.requirePINLogin(profile)
      let authenticator = try self.authenticator(name, for: profile)
      let (known, record) = try await gate.store.read {
        (try $0.storedReply(order.key, of: caller.clientID), try $0.authenticator(name))
      }
      if record?.isActive == true { throw DeviceAPIError(.authenticatorAlreadyRegistered) }
      if let known {
        let reply = try known.repeated(for: order.requestHash)
        guard reply.isSuccess else { return reply.response() }
        return try await propose(order, for: profile, authenticator, again: record, reply)
      }
      return try await register(order, authenticator, profile)
    }
  }

  /// The authenticator, if the server offers it and can run its scripts, the device has announced it, and the profile
  /// has a PIN.
  private func authenticator(
    _ name: AuthenticatorName, for profile: Profile
  ) throws(DeviceAPIError) -> ServerConfiguration.Authenticator {
    guard name.id != AuthenticatorEntry.pinIdentifier else { throw DeviceAPIError(.authenticatorAlreadyRegistered) }
    let configuration = authenticators.configuration
    guard let authenticator = configuration.authenticator(name.id) else {
      throw DeviceAPIError(.authenticatorInvalid, "there is no such authenticator")
    }
    guard configuration.isEnabled(authenticator.kind) else {
      throw authenticator.kind == .custom
        ? DeviceAPIError(.customDisabled) : DeviceAPIError(.authenticatorNotSupported, "the server does not allow it")
    }
    guard profile.capabilities?.includes(authenticator) == true else {
      throw DeviceAPIError(.authenticatorNotSupported, "the device has not announced it in approval_capabilities")
    }
    guard profile.hasPIN else { throw DeviceAPIError(.actionNotAllowed, "the profile has no PIN") }
    guard authenticator.kind == .biometric || authenticators.scripts.canRun(authenticator) else {
      throw DeviceAPIError(.authenticatorNotSupported, "the server has no scripts for it that can be run")
    }
    return authenticator
  }

  private func register(
    _ order: Order, _ authenticator: ServerConfiguration.Authenticator, _ profile: Profile
  ) async throws -> Response {
    switch authenticator.kind {
    case .biometric:
      if let refused = try await verifyPIN(order) { return refused }
      return try await propose(order, for: profile, authenticator, StoredReply.success(order.requestHash))
    case .custom:
      let result = try await runScript(order, authenticator, profile)
      switch result.outcome {
      case .accepted:
        return try await propose(
          order, for: profile, authenticator, registrationData: result.registrationData,
          StoredReply(requestHash: order.requestHash, status: 200, body: JSON.encode(result.info)))
      case .notRun: throw DeviceAPIError(notRun: result.info)
      case .mayRetry, .final, .noResult:
        let reply = StoredReply(Self.problem(result, issuer: gate.origin.issuer), to: order.requestHash)
        try await conclude(order, reply)
        return reply.response()
      }
    }
  }

  private static func problem(_ result: ScriptResult, issuer: String) -> Problem {
    let slug: Problem.Slug =
      switch result.status {
      case 4001: .authenticatorAlreadyRegistered
      case 4002: .authenticatorNotRegistered
      case 3000...3999: .authenticatorError
      default: .customFailed
      }
    var problem = Problem(slug, issuer: issuer)
    problem.customInfo = result.info
    return problem
  }

  /// Verifies the assertion of the PIN, which counts as a PIN attempt.
  /// - Returns: the response to a wrong PIN; nil after the correct one.
  private func verifyPIN(_ order: Order) async throws -> Response? {
    guard let text = order.assertion else {
      throw DeviceAPIError(.invalidRequest, "a biometric authenticator needs an assertion of the PIN")
    }
    let (clientID, profileID) = (order.name.profile.clientID, order.name.profile.id)
    let assertion = try self.assertion(text, of: order.name, audience: order.audience)
    let attempt = PINAttempt(
      clientID: clientID, profileID: profileID, key: "authenticator-pin/\(profileID)/\(assertion.claims.jti)",
      requestHash: gate.hasher.hash(text, for: .knowledgeAssertion))
    return try await pins.serialized(with: profileID, on: clientID) {
      let (known, profile) = try await gate.store.read {
        (try $0.storedReply(attempt.key, of: clientID), try $0.profile(profileID, on: clientID))
      }
      if let known {
        let reply = try known.repeated(for: attempt.requestHash)
        guard reply.isSuccess else { return reply.response() }
        guard let key = profile?.knowledge?.publicKey, assertion.isSigned(by: key) else {
          throw DeviceAPIError(.alreadyHandled, "the PIN was changed since")
        }
        return nil
      }
      try await gate.count(attempt)
      let reply: StoredReply?
      do {
        reply = try await pins.verify(attempt, isRight: assertion.isSigned) { _, outcome in
          .init(
            reply: Problem(outcome, issuer: gate.origin.issuer).map { StoredReply($0, to: attempt.requestHash) }
              ?? .success(attempt.requestHash))
        }
      } catch let error as PINAttemptVerifier.VerificationError { throw DeviceAPIError(error) }
      guard let reply, !reply.isSuccess else { return nil }
      return await gate.revocations.explained(reply, attempt).response()
    }
  }

  /// - Parameter registrationID: for an assertion by the authenticator's key; nil for one by the PIN's.
  private func assertion(
    _ text: String, of name: AuthenticatorName, audience: String, registrationID: String? = nil
  ) throws(DeviceAPIError) -> KnowledgeAssertion {
    do {
      return try KnowledgeAssertion(
        parsing: text, clientID: name.profile.clientID.text, profileID: name.profile.id.text, audience: audience,
        now: gate.clock.nowSeconds, nonce: registrationID, authenticator: registrationID == nil ? nil : name.id)
    } catch { throw DeviceAPIError(error) }
  }

  /// Runs the registration script. The attempt is stored first, so that a repetition after a crash asks the script with
  /// the same attempt ID. Registrations that the script refuses, or for which it gives no result, are limited like
  /// failures: otherwise data could be guessed here.
  private func runScript(
    _ order: Order, _ authenticator: ServerConfiguration.Authenticator, _ profile: Profile
  ) async throws -> ScriptResult {
    let attempt = Self.attempt(order)
    let now = gate.clock.now()
    let counted = try await gate.store.write { database -> CountedAuthenticatorAttempt? in
      // Also for an attempt that is repeated: many could be kept until a script that failed works again.
      let since = now - AuthenticatorRecord.refusalCountsFor
      guard try database.refusedRegistrations(of: order.name, since: since) < authenticator.maxFailures else {
        return nil
      }
      if let known = try database.countedAttempt(attempt) { return known }
      let counted = CountedAuthenticatorAttempt(
        requestHash: attempt.requestHash, attemptID: Random.uuid(), registrationID: order.id)
      try database.insert(attempt, counted, now: now)
      return counted
    }
    guard let counted else { throw Self.tooManyRefused }
    guard counted.requestHash == order.requestHash else { throw DeviceAPIError(.idempotencyConflict) }
    var call = ScriptCall(
      .register, for: .registration, order.name, of: profile.userID, issuer: gate.origin.issuer, data: order.data,
      nonce: order.id)
    call.attemptID = counted.attemptID
    guard let result = await authenticators.scripts.run(call, of: authenticator) else {
      throw DeviceAPIError(AuthenticatorVerifier.VerificationError.busy)
    }
    return result
  }

  private static func attempt(_ order: Order) -> AuthenticatorAttempt {
    AuthenticatorAttempt(name: order.name, key: order.key, requestHash: order.requestHash)
  }

  private func conclude(_ order: Order, _ reply: StoredReply) async throws {
    try await gate.store.write { [attempt = Self.attempt(order), now = gate.clock.now()] database in
      _ = try database.delete(attempt)
      try database.insert(reply, key: order.key, clientID: order.name.profile.clientID, now: now)
    }
  }

  /// Stores a registration that is to be activated.
  private func propose(
    _ order: Order, for profile: Profile, _ authenticator: ServerConfiguration.Authenticator,
    registrationData: String? = nil, _ reply: StoredReply
  ) async throws -> Response {
    let new = try self.new(order, authenticator, registrationData)
    let (attempt, now) = (Self.attempt(order), gate.clock.now())
    let isStored = try await gate.store.write { database in
      _ = try database.delete(attempt)
      // The profile can have been deleted while the PIN was verified or the script ran.
      guard try database.isCurrent(profile), try database.propose(new, now: now) else { return false }
      try database.insert(reply, key: order.key, clientID: profile.clientID, now: now)
      return true
    }
    guard isStored else { throw DeviceAPIError(.actionNotAllowed, "the profile changed meanwhile") }
    return try await response(order, new, profile, reply)
  }

  /// Repeats a registration whose response was lost: its refresh token cannot be encrypted again, so that there is a
  /// new one.
  private func propose(
    _ order: Order, for profile: Profile, _ authenticator: ServerConfiguration.Authenticator,
    again record: AuthenticatorRecord?, _ reply: StoredReply
  ) async throws -> Response {
    let now = gate.clock.now()
    guard let record, record.registrationID == order.id, !record.hasExpired(at: now) else {
      throw DeviceAPIError(.notFound, "the registration was replaced, or was not activated in time")
    }
    let new = try self.new(order, authenticator, record.registrationData)
    let isStored = try await gate.store.write { try $0.isCurrent(profile) && $0.propose(new, now: record.proposedAt) }
    guard isStored else { throw DeviceAPIError(.authenticatorAlreadyRegistered) }
    return try await response(order, new, profile, reply)
  }

  private func new(
    _ order: Order, _ authenticator: ServerConfiguration.Authenticator, _ registrationData: String?
  ) throws -> NewAuthenticator {
    let key = try NewKnowledgeKey(
      clientID: order.name.profile.clientID, profileID: order.name.profile.id, authenticator: order.name.id,
      hasher: gate.hasher)
    return NewAuthenticator(
      name: order.name, kind: authenticator.kind, registrationID: order.id, key: key,
      registrationData: registrationData)
  }

  private func response(
    _ order: Order, _ new: NewAuthenticator, _ profile: Profile, _ reply: StoredReply
  ) async throws -> Response {
    let key =
      if let serverKey = profile.serverKey { try await keyring.key(serverKey) } else { try await keyring.shared() }
    let registration = AuthenticatorRegistration(
      registrationID: order.id, sealedToken: try new.key.sealed(to: order.recipient, by: key),
      serverCertificate: key.certificate.bytes.base64, expiresInMs: AuthenticatorRecord.pendingFor.milliseconds,
      customInfo: reply.body.isEmpty ? nil : try JSON.decode(CustomInfo.self, from: reply.body))
    return .json(registration, status: .created)
  }

  /// Only one attempt is allowed: a registration that was signed by another key is void.
  func activate(
    _ name: AuthenticatorName, _ registrationID: String, _ text: String, audience: String, caller: DeviceGate.Caller
  ) async throws {
    try await authenticators.serialized(with: name) {
      let profile = try await caller.profile(name.profile.id, in: gate.store)
      let assertion = try self.assertion(text, of: name, audience: audience, registrationID: registrationID)
      let now = gate.clock.now()
      guard let record = try await gate.store.read({ try $0.authenticator(name) }),
        record.registrationID == registrationID, !record.hasExpired(at: now)
      else { throw DeviceAPIError(.notFound, "there is no such registration") }
      // For a registered authenticator this is a repetition: it changes nothing, and says nothing about its key.
      guard !record.isActive else { return }
      guard assertion.isSigned(by: record.publicKey) else {
        _ = try await gate.store.write { try $0.removeAuthenticator(name) }
        throw DeviceAPIError(.answerInvalid, "the assertion is not made with the authenticator's token")
      }
      guard try await gate.store.write({ try $0.activate(name, registrationID: registrationID) }) else {
        throw DeviceAPIError(.notFound, "there is no such registration")
      }
      authenticators.announcer.deviceLog.about(profile.clientID).notice(
        "authenticator \(name.id) of profile \(profile.id) on device \(profile.clientID) is registered")
    }
  }
}
