import Cryptography
import HTTPTypes
import Logging
import OpenPGP
import ReferenceProtocol

/// Turns activation codes into devices and profiles. A code names no account, so wrong ones can only be slowed down:
/// per source and for everybody together. Each is counted before it is looked at and given back if it was right, so a
/// source may have as many under way at a time as it may have wrong ones.
struct ActivationDesk: Sendable {
  /// 13 digits carry 12 random ones: 600 guesses a minute find one code of a thousand open ones in about 3 years.
  private static let wrongCodesPerMinute = 600.0
  private static let wrongCodesPerMinuteAndSource = 10.0

  let store: Store
  let peppered: Peppered
  let keyring: ServerKeyring
  let clock: ServerClock
  let announcer: Announcer
  let expiry: ExpiryTimer
  /// Devices that one fleet token may register.
  let fleetLimit: Int
  private let everybody = RateLimiter(perSecond: wrongCodesPerMinute / 60, burst: wrongCodesPerMinute)
  private let sources = RateLimiter(
    perSecond: wrongCodesPerMinuteAndSource / 60, burst: wrongCodesPerMinuteAndSource)

  init(
    store: Store, peppered: Peppered, keyring: ServerKeyring, clock: ServerClock, announcer: Announcer,
    expiry: ExpiryTimer, fleetLimit: Int
  ) {
    self.store = store
    self.peppered = peppered
    self.keyring = keyring
    self.clock = clock
    self.announcer = announcer
    self.expiry = expiry
    self.fleetLimit = fleetLimit
  }

  private enum Registration: Sendable {
    case device(String)
    case refused, fleetIsFull
  }

  /// The same credential and key give the same device again.
  /// - Parameter credential: an activation code or a fleet token.
  /// - Returns: the device's `client_id`.
  func register(
    _ registration: RegistrationRequest, key: P256PublicKey, credential: String, peer: String
  ) async throws -> String {
    let code = ActivationCode(credential).map { peppered.hash($0.digits, for: .activationCode) }
    let fleet = peppered.hash(credential, for: .fleetToken)
    let attempt = try await self.attempt(from: peer, isCode: code != nil, fleet)
    let nowMs = clock.nowMs()
    let thumbprint = JWK(key).thumbprint
    let outcome = try await store.write { [fleetLimit] database -> Registration in
      let newID = Random.bytes(32).uppercaseHex
      if let code, let stored = try database.activationCode(code, nowMs: nowMs) {
        if let clientID = stored.clientID {
          guard let device = try database.device(clientID), !device.isDeleted, device.keyThumbprint == thumbprint else {
            return .refused
          }
          return .device(clientID)
        }
        try database.insertDevice(id: newID, registration: registration, key: key, credential: code, nowMs: nowMs)
        try database.bindActivationCode(code, to: newID)
        return .device(newID)
      }
      guard try database.isFleetToken(fleet) else { return .refused }
      if let known = try database.device(registeredWith: fleet, thumbprint: thumbprint) { return .device(known.id) }
      guard try database.deviceCount(registeredWith: fleet) < fleetLimit else { return .fleetIsFull }
      try database.insertDevice(id: newID, registration: registration, key: key, credential: fleet, nowMs: nowMs)
      return .device(newID)
    }
    if case .fleetIsFull = outcome {
      attempt.giveBack()
      throw Refusal(
        .forbidden, "access_denied", "This fleet token has registered as many devices as it may.",
        code: Problem.Slug.actionNotAllowed.code)
    }
    guard case .device(let clientID) = outcome else {
      announcer.log.notice("wrong activation code or fleet token from \(peer)")
      throw Refusal(
        .unauthorized, "invalid_token", "The activation code or fleet token is wrong, used or expired.",
        headers: [.wwwAuthenticate: #"Bearer error="invalid_token""#])
    }
    attempt.giveBack()
    announcer.log.info("device \(clientID) registered")
    return clientID
  }

  /// The refresh token of a profile that waits for its PIN.
  struct Proposal: Sendable {
    /// Base64.
    let sealedToken: String
    let serverCertificate: OpenPGPCertificate
    let nonce: String
  }

  /// Makes the user's profile on the device. Every repeat, while its PIN is not chosen, makes the refresh token of
  /// before worthless.
  /// - Parameter recipient: who a refresh token is sealed to; nil where profiles have no PIN.
  /// - Returns: nil without a PIN, or once it is chosen.
  func activate(
    _ code: String, on device: Device, profileID: String, sealingTo recipient: OpenPGPCertificate?, peer: String
  ) async throws -> Proposal? {
    let attempt = try self.attempt(from: peer)
    let hash = ActivationCode(code).map { peppered.hash($0.digits, for: .activationCode) }
    let fresh = try recipient.map { _ in
      try FreshKnowledge(clientID: device.id, profileID: profileID, peppered: peppered)
    }
    let nonce = Random.bytes(32).base64URL
    let nowMs = clock.nowMs()
    let (activation, isProposed) = try await store.write { database in
      let activation = try database.activate(hash, as: profileID, on: device.id, nowMs: nowMs)
      guard case .activated = activation, let fresh else { return (activation, false) }
      return (activation, try database.propose(fresh, nonce: nonce, nowMs: nowMs))
    }
    switch activation {
    case .wrongCode:
      announcer.log.notice("wrong activation code from \(peer)")
      throw Refusal(.badRequest, "invalid_grant", "The activation code is wrong, used or expired.")
    case .profileInUse:
      attempt.giveBack()
      throw Refusal(.badRequest, "invalid_request", "This profile_id belongs to another user of the device.")
    case .activated(let userID, let effects):
      attempt.giveBack()
      announcer.announce(effects)
      announcer.log.info("user \(userID) activated as profile \(profileID) on device \(device.id)")
    }
    guard isProposed, let fresh, let recipient else { return nil }
    expiry.expect(atMs: nowMs + Knowledge.pendingForMs)
    let key = try await keyring.shared()
    return Proposal(
      sealedToken: try fresh.sealed(to: recipient, by: key), serverCertificate: key.certificate, nonce: nonce)
  }

  /// Counts one look at a code before it is looked at: of many at the same time no more are looked at than may be wrong.
  /// The source comes first, so that one that has used up its share takes nothing from everybody's.
  private func attempt(from peer: String) throws(Refusal) -> Attempt {
    guard sources.allows(peer) else { throw Self.slowDown }
    guard everybody.allows("all") else {
      sources.giveBack(peer)
      throw Self.slowDown
    }
    return Attempt { [sources, everybody] in
      sources.giveBack(peer)
      everybody.giveBack("all")
    }
  }

  /// A fleet token is nobody's guess, and many devices may register with it at the same time: only a wrong one counts.
  private func attempt(from peer: String, isCode: Bool, _ fleet: [UInt8]) async throws -> Attempt {
    if !isCode, try await store.read({ try $0.isFleetToken(fleet) }) { return Attempt {} }
    return try attempt(from: peer)
  }

  /// A look at a code that counts as wrong unless it is given back.
  private struct Attempt {
    let giveBack: @Sendable () -> Void
  }

  private static let slowDown = Refusal(
    .tooManyRequests, "slow_down", "Too many wrong codes.", code: Problem.Slug.rateLimited.code,
    headers: [.retryAfter: "60"])
}
