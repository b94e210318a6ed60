import Cryptography
import HTTPTypes
import Logging
import OpenPGP
import ReferenceProtocol

/// Turns activation codes into devices and profiles. A code names no account, so wrong ones can only be slowed down:
/// per source and for everybody together.
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
  private let everybody = RateLimiter(perSecond: wrongCodesPerMinute / 60, burst: wrongCodesPerMinute)
  private let sources = RateLimiter(
    perSecond: wrongCodesPerMinuteAndSource / 60, burst: wrongCodesPerMinuteAndSource)

  init(
    store: Store, peppered: Peppered, keyring: ServerKeyring, clock: ServerClock, announcer: Announcer,
    expiry: ExpiryTimer
  ) {
    self.store = store
    self.peppered = peppered
    self.keyring = keyring
    self.clock = clock
    self.announcer = announcer
    self.expiry = expiry
  }

  private enum Registration: Sendable {
    case device(String)
    case refused
  }

  /// The same credential and key give the same device again.
  /// - Parameter credential: an activation code or a fleet token.
  /// - Returns: the device's `client_id`.
  func register(
    _ registration: RegistrationRequest, key: P256PublicKey, credential: String, peer: String
  ) async throws -> String {
    try requireRoom(for: peer)
    let code = ActivationCode(credential).map { peppered.hash($0.digits, for: .activationCode) }
    let fleet = peppered.hash(credential, for: .fleetToken)
    let nowMs = clock.nowMs()
    let thumbprint = JWK(key).thumbprint
    let outcome = try await store.write { database -> Registration in
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
      try database.insertDevice(id: newID, registration: registration, key: key, credential: fleet, nowMs: nowMs)
      return .device(newID)
    }
    guard case .device(let clientID) = outcome else {
      countWrongCode(from: peer)
      throw Refusal(
        .unauthorized, "invalid_token", "The activation code or fleet token is wrong, used or expired.",
        headers: [.wwwAuthenticate: #"Bearer error="invalid_token""#])
    }
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
    try requireRoom(for: peer)
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
      countWrongCode(from: peer)
      throw Refusal(.badRequest, "invalid_grant", "The activation code is wrong, used or expired.")
    case .profileInUse:
      throw Refusal(.badRequest, "invalid_request", "This profile_id belongs to another user of the device.")
    case .activated(let userID, let effects):
      announcer.announce(effects)
      announcer.log.info("user \(userID) activated as profile \(profileID) on device \(device.id)")
    }
    guard isProposed, let fresh, let recipient else { return nil }
    expiry.expect(atMs: nowMs + Knowledge.pendingForMs)
    let key = try await keyring.shared()
    return Proposal(
      sealedToken: try fresh.sealed(to: recipient, by: key), serverCertificate: key.certificate, nonce: nonce)
  }

  private func requireRoom(for peer: String) throws(Refusal) {
    guard everybody.hasRoom("all"), sources.hasRoom(peer) else {
      throw Refusal(
        .tooManyRequests, "slow_down", "Too many wrong codes.", code: Problem.Slug.rateLimited.code,
        headers: [.retryAfter: "60"])
    }
  }

  private func countWrongCode(from peer: String) {
    _ = everybody.allows("all")
    _ = sources.allows(peer)
    announcer.log.notice("wrong activation code from \(peer)")
  }
}
