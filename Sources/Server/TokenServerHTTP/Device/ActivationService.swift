// SPDX-License-Identifier: Apache-2.0
import Cryptography
import HTTPTypes
import Logging
import OpenPGP
import ReferenceProtocol
import TokenServerCore
import TokenServerStore

/// Redeems activation codes for devices and profiles. A code names no account, so wrong codes can only be rate limited:
/// per source, per IPv6 site and in total. Each attempt is counted before the code is checked, and refunded if the code
/// was correct. So a source can have at most as many concurrent attempts as wrong ones. An attempt with the token of a
/// full fleet counts for its source and site, too, because each counts the devices of the fleet.
struct ActivationService: Sendable {
  /// With 1000 open codes of 12 random digits, 600 guesses a minute find one in about 3 years. Codes that are valid for
  /// days have 24.
  static let wrongCodesPerMinute = 600.0
  private static let wrongCodesPerMinuteAndSite = 60.0
  private static let wrongCodesPerMinuteAndSource = 10.0

  let store: Store
  let hasher: KeyedHasher
  let keyring: ServerKeyring
  let clock: ServerClock
  let announcer: any Announcer
  let expiry: any ExpirySchedule
  /// The maximum number of devices registered with one fleet token.
  let fleetLimit: Int
  /// Lines about wrong codes of boards that are not registered.
  private let guessLog: DeviceLog
  private let everybody: RateLimiter
  private let sites: RateLimiter
  private let sources: RateLimiter
  /// Of registrations with the tokens of full fleets: they must not use up the attempts at activation codes.
  private let fullFleetSites: RateLimiter
  private let fullFleetSources: RateLimiter
  /// Whether a fleet was full, by the hash of its token.
  private let fullFleets = RecentValues<[UInt8], Bool>(capacity: 1000)

  /// - Parameter uptime: the time on a monotonic clock, for the limits of wrong codes.
  init(
    store: Store, hasher: KeyedHasher, keyring: ServerKeyring, clock: ServerClock, announcer: any Announcer,
    expiry: any ExpirySchedule, fleetLimit: Int, servers: ServerCount = ServerCount(),
    uptime: @escaping @Sendable () -> Duration = Uptime.now
  ) {
    func limiter(_ perMinute: Double) -> RateLimiter {
      RateLimiter(perSecond: perMinute / 60, burst: perMinute, servers: servers, uptime: uptime)
    }
    everybody = limiter(Self.wrongCodesPerMinute)
    sites = limiter(Self.wrongCodesPerMinuteAndSite)
    sources = limiter(Self.wrongCodesPerMinuteAndSource)
    fullFleetSites = limiter(Self.wrongCodesPerMinuteAndSite)
    fullFleetSources = limiter(Self.wrongCodesPerMinuteAndSource)
    self.store = store
    self.hasher = hasher
    self.keyring = keyring
    self.clock = clock
    self.announcer = announcer
    self.expiry = expiry
    self.fleetLimit = fleetLimit
    guessLog = DeviceLog(announcer.log, others: "wrong codes of boards that are not registered", uptime: uptime)
  }

  private enum Registration: Sendable {
    case device(ClientID)
    case newInFleet(ClientID)
    case refused, fleetIsFull
  }

  /// Registers a device. The same credential and key return the same device again.
  /// - Parameter credential: an activation code or a fleet token.
  /// - Returns: the device's `client_id`.
  func register(
    _ registration: RegistrationRequest, key: P256PublicKey, credential: String, peer: String
  ) async throws -> ClientID {
    let codeHashes = hashes(of: credential)
    let fleetHashes = hasher.hashes(credential, for: .fleetToken)
    let attempt = try await self.attempt(from: peer, isCode: codeHashes != nil, fleetHashes)
    let now = clock.now()
    let thumbprint = JWK(key).thumbprint
    let outcome = try await write(during: attempt) { [fleetLimit] database -> Registration in
      let newID = ClientID(Random.bytes(32).uppercaseHex)
      let code = try codeHashes.map { try database.adoptActivationCode($0) }
      if let code, let stored = try database.activationCode(code, now: now) {
        if let clientID = stored.clientID {
          guard let device = try database.device(clientID), !device.isDeleted, device.keyThumbprint == thumbprint else {
            return .refused
          }
          return .device(clientID)
        }
        // First, so that of two requests one waits for the other here, and then finds its device.
        try database.bindActivationCode(code, to: newID, profile: nil)
        try database.insertDevice(id: newID, registration: registration, key: key, credential: code, now: now)
        return .device(newID)
      }
      let fleet = try database.adoptFleetToken(fleetHashes)
      guard try database.isFleetToken(fleet) else { return .refused }
      if let known = try database.device(registeredWith: fleet, thumbprint: thumbprint) { return .device(known.id) }
      // A device that registers and deregisters in a loop must not fill the disk.
      let yesterday = now - .seconds(86_400)
      guard try database.deviceCount(registeredWith: fleet, orDeletedAfter: now) < fleetLimit,
        try database.deviceCount(registeredWith: fleet, orDeletedAfter: yesterday) < 2 * fleetLimit
      else { return .fleetIsFull }
      try database.insertDevice(id: newID, registration: registration, key: key, credential: fleet, now: now)
      return .newInFleet(newID)
    }
    let clientID: ClientID
    switch outcome {
    case .device(let id): clientID = id
    case .newInFleet(let id):
      clientID = id
      // It has room again.
      if attempt.isCounted { fullFleets.insert(false, for: fleetHashes[0]) }
    case .fleetIsFull:
      fullFleets.insert(true, for: fleetHashes[0])
      // It was not known before.
      if !attempt.isCounted { _ = try? attemptWithFullFleet(from: peer) }
      throw ResponseError(
        .forbidden, "access_denied", "This fleet token has registered as many devices as it may.",
        code: Problem.Slug.actionNotAllowed.code)
    case .refused:
      guessLog.about(nil).notice("wrong activation code or fleet token from \(peer)")
      throw ResponseError(
        .unauthorized, "invalid_token", "The activation code or fleet token is wrong, used or expired.",
        headers: [.wwwAuthenticate: #"Bearer error="invalid_token""#])
    }
    attempt.giveBack()
    announcer.deviceLog.about(clientID).info("device \(clientID) registered")
    return clientID
  }

  /// The refresh token for a profile whose PIN is not chosen yet.
  struct Proposal: Sendable {
    /// Base64.
    let sealedToken: String
    let serverCertificate: OpenPGPCertificate
    let nonce: String
  }

  /// Creates the user's profile on the device. While its PIN is not chosen, every repetition invalidates the previous
  /// refresh token.
  /// - Parameter recipient: the certificate that the refresh token is encrypted to; nil if profiles have no PIN.
  /// - Returns: nil without a PIN, or once the PIN is chosen.
  func activate(
    _ code: String, on device: Device, profileID: ProfileID, sealingTo recipient: OpenPGPCertificate?, peer: String
  ) async throws -> Proposal? {
    let attempt = try self.attempt(from: peer)
    let hashes = hashes(of: code)
    let fresh = try recipient.map { _ in
      try NewKnowledgeKey(clientID: device.id, profileID: profileID, hasher: hasher)
    }
    let nonce = Random.bytes(32).base64URL
    let now = clock.now()
    let (activation, isProposed) = try await write(during: attempt) { database in
      let hash = try hashes.map { try database.adoptActivationCode($0) }
      let activation = try database.activate(hash, as: profileID, on: device.id, now: now)
      guard case .activated = activation, let fresh else { return (activation, false) }
      return (activation, try database.propose(fresh, nonce: nonce, now: now))
    }
    switch activation {
    case .wrongCode:
      announcer.deviceLog.about(device.id).notice("wrong activation code from \(peer)")
      throw ResponseError(.badRequest, "invalid_grant", "The activation code is wrong, used or expired.")
    case .profileInUse:
      attempt.giveBack()
      throw ResponseError(.badRequest, "invalid_request", "This profile_id belongs to another user of the device.")
    case .activated(let userID, let effects):
      attempt.giveBack()
      announcer.announce(effects)
      announcer.deviceLog.about(device.id).info(
        "user \(userID) activated as profile \(profileID) on device \(device.id)")
    }
    guard isProposed, let fresh, let recipient else { return nil }
    expiry.expect(at: now + PINVerifierRecord.pendingFor)
    let key = try await keyring.shared()
    return Proposal(
      sealedToken: try fresh.sealed(to: recipient, by: key), serverCertificate: key.certificate, nonce: nonce)
  }

  /// - Returns: nil for text that cannot be a code.
  private func hashes(of code: String) -> [[UInt8]]? {
    ActivationCode(code).map { hasher.hashes($0.digits, for: .activationCode) }
  }

  /// Counts an attempt before the code is checked, so that concurrent attempts cannot exceed the limit of wrong codes.
  private func attempt(from peer: String) throws(ResponseError) -> Attempt {
    try attempt(from: peer, sources, sites, total: everybody)
  }

  private func attemptWithFullFleet(from peer: String) throws(ResponseError) -> Attempt {
    try attempt(from: peer, fullFleetSources, fullFleetSites, total: nil)
  }

  /// The narrowest limit is checked first, so that a source at its limit does not use up the others.
  private func attempt(
    from peer: String, _ sources: RateLimiter, _ sites: RateLimiter, total: RateLimiter?
  ) throws(ResponseError) -> Attempt {
    var limits = [(limiter: sources, key: peer)]
    if let site = ConnectionSource.site(of: peer) { limits.append((sites, site)) }
    if let total { limits.append((total, "all")) }
    for (index, limit) in limits.enumerated() where !limit.limiter.allows(limit.key) {
      for taken in limits[..<index] { taken.limiter.giveBack(taken.key) }
      throw Self.slowDown
    }
    return Attempt(isCounted: true) { [limits] in
      for limit in limits { limit.limiter.giveBack(limit.key) }
    }
  }

  /// A fleet token is too long to guess, and many devices may register with it concurrently: only a wrong one is
  /// counted, and one whose fleet was full.
  private func attempt(from peer: String, isCode: Bool, _ fleet: [[UInt8]]) async throws -> Attempt {
    guard !isCode, try await store.read({ try fleet.contains(where: $0.isFleetToken) }) else {
      return try attempt(from: peer)
    }
    guard fullFleets[fleet[0]] == true else { return Attempt(isCounted: false) {} }
    return try attemptWithFullFleet(from: peer)
  }

  /// If the storage is not available, nobody learns whether the code is right: the attempt is refunded.
  private func write<Value: Sendable>(
    during attempt: Attempt, _ change: @escaping @Sendable (Database) throws -> Value
  ) async throws -> Value {
    do { return try await store.write(change) } catch let error as StorageUnavailableError {
      attempt.giveBack()
      throw error
    }
  }

  /// An attempt that counts as wrong unless it is refunded.
  private struct Attempt {
    let isCounted: Bool
    let giveBack: @Sendable () -> Void
  }

  private static let slowDown = ResponseError(
    .tooManyRequests, "slow_down", "Too many wrong codes.", code: Problem.Slug.rateLimited.code,
    headers: [.retryAfter: "60"])
}
