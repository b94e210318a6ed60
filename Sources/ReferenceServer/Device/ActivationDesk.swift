import Cryptography
import HTTPTypes
import Logging
import ReferenceProtocol

/// Turns activation codes into devices and profiles. A code names no account, so wrong ones can only be slowed down:
/// per source and for everybody together.
struct ActivationDesk: Sendable {
  /// 13 digits carry 12 random ones: 600 guesses a minute find one code of a thousand open ones in about 3 years.
  private static let wrongCodesPerMinute = 600.0
  private static let wrongCodesPerMinuteAndSource = 10.0

  let store: Store
  let peppered: Peppered
  let clock: ServerClock
  let announcer: Announcer
  private let everybody = RateLimiter(perSecond: wrongCodesPerMinute / 60, burst: wrongCodesPerMinute)
  private let sources = RateLimiter(
    perSecond: wrongCodesPerMinuteAndSource / 60, burst: wrongCodesPerMinuteAndSource)

  init(store: Store, peppered: Peppered, clock: ServerClock, announcer: Announcer) {
    self.store = store
    self.peppered = peppered
    self.clock = clock
    self.announcer = announcer
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

  private enum Activation: Sendable {
    case wrongCode, profileInUse
    case activated(userID: String, Effects)
  }

  /// Makes the user's profile on the device. The same code, device and profile id again is a success that changes
  /// nothing; a new code makes the user's profile on this device anew.
  func activate(_ code: String, on device: Device, profileID: String, peer: String) async throws {
    try requireRoom(for: peer)
    let hash = ActivationCode(code).map { peppered.hash($0.digits, for: .activationCode) }
    let nowMs = clock.nowMs()
    let outcome = try await store.write { database -> Activation in
      guard let hash, let stored = try database.activationCode(hash, nowMs: nowMs),
        stored.clientID == nil || stored.clientID == device.id,
        stored.profileID == nil || stored.profileID == profileID
      else { return .wrongCode }
      let inPlace = try database.profile(profileID, on: device.id).flatMap { $0.isDeleted ? nil : $0 }
      if let inPlace, inPlace.userID != stored.userID { return .profileInUse }
      if inPlace?.activation == hash { return .activated(userID: stored.userID, Effects()) }
      // The profile this code made was deleted since: a deleted profile does not come back by a repeated message.
      guard stored.profileID == nil else { return .wrongCode }
      var effects = Effects()
      if let older = try database.profile(of: stored.userID, on: device.id) {
        effects = try database.deleteProfile(older, nowMs: nowMs)
      }
      try database.insertProfile(profileID, on: device.id, userID: stored.userID, activation: hash, nowMs: nowMs)
      try database.bindActivationCode(hash, to: device.id, profile: profileID)
      return .activated(userID: stored.userID, effects)
    }
    switch outcome {
    case .wrongCode:
      countWrongCode(from: peer)
      throw Refusal(.badRequest, "invalid_grant", "The activation code is wrong, used or expired.")
    case .profileInUse:
      throw Refusal(.badRequest, "invalid_request", "This profile_id belongs to another user of the device.")
    case .activated(let userID, let effects):
      announcer.announce(effects)
      announcer.log.info("user \(userID) activated as profile \(profileID) on device \(device.id)")
    }
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
