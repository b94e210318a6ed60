// SPDX-License-Identifier: Apache-2.0
import Cryptography
import Hummingbird
import Logging
import OpenPGP
import ReferenceProtocol
import TokenServerCore
import TokenServerStore

/// The routes for configuration, validation at start, key exchange, push enrollment, and deregistration of a user.
struct ProfileRoutes: Sendable {
  let gate: DeviceGate
  let keyring: ServerKeyring
  let announcer: any Announcer
  /// Nil without a broker.
  let mailboxes: (any Mailboxes)?
  let configuration: ServerConfiguration

  func add(to router: Router<ServerContext>) {
    router.get("/device/v1/configuration") { request, _ in
      _ = try await gate.admit(request)
      return Response.json(deviceConfiguration)
    }
    router.post("/device/v1/validations") { request, _ in try await validate(request) }
    router.put("/device/v1/profiles/:pid/mobile-auth") { try await exchangeKeys($0, $1) }
    router.post("/device/v1/profiles/:pid/mobile-auth/ack") { try await acknowledge($0, $1) }
    router.delete("/device/v1/profiles/:pid/mobile-auth") { try await disenroll($0, $1, .keysAndPush) }
    router.put("/device/v1/profiles/:pid/push") { try await enrollForPush($0, $1) }
    router.delete("/device/v1/profiles/:pid/push") { try await disenroll($0, $1, .pushOnly) }
    router.delete("/device/v1/profiles/:pid") { try await deregister($0, $1) }
  }

  private var settings: ServerConfiguration.MobileAuthentication { configuration.mobileAuthentication }

  private var deviceConfiguration: DeviceConfiguration {
    DeviceConfiguration(
      transports: [.sse, .longpoll] + (mailboxes == nil ? [] : [.mqtt]), openPGPProfiles: ["v4-25519"],
      minimumSoftwareVersion: settings.minimumSoftwareVersion, pinPolicy: configuration.application.pinPolicy,
      serverTimeMs: gate.clock.now().milliseconds)
  }

  private func validate(_ request: Request) async throws -> Response {
    let clientID = try await gate.admit(request).clientID
    let validation = try JSON.decode(ValidationRequest.self, from: await request.bytes())
    do { try validation.checkVersions() } catch { throw DeviceAPIError(.invalidRequest, error.description) }
    guard SoftwareVersion(validation.softwareVersion) >= SoftwareVersion(settings.minimumSoftwareVersion) else {
      throw DeviceAPIError(.outdatedApp, "at least \(settings.minimumSoftwareVersion) is needed")
    }
    let capabilities: String?
    do { capabilities = try validation.checkedCapabilities() } catch {
      throw DeviceAPIError(.invalidRequest, error.description)
    }
    guard let device = try await gate.store.read({ try $0.device(clientID) }) else {
      throw DeviceAPIError(.deviceDeregistered, gone: Gone(clientID: clientID))
    }
    let isNews =
      device.softwareVersion != validation.softwareVersion || device.osVersion != validation.osVersion
      || (capabilities ?? device.capabilities) != device.capabilities
    if isNews {
      try await gate.store.write { database in
        try database.noteSoftware(
          of: device.id, version: validation.softwareVersion, osVersion: validation.osVersion,
          capabilities: capabilities ?? device.capabilities)
      }
    }
    let (profiles, names) = try await gate.store.read { database in
      (try database.profiles(on: device.id), Set(try database.profileNames(on: device.id).map(\.id)))
    }
    let known = Dictionary(profiles.map { ($0.id, $0) }) { first, _ in first }
    var seen: Set<ProfileID> = []
    let listed = validation.profiles.map { ProfileID($0) }.filter { seen.insert($0).inserted }
    let counts = listed.compactMap { id in
      known[id]?.knowledge.flatMap {
        $0.isActive ? $0.counts(of: id, limit: configuration.application.maxPINAttempts) : nil
      }
    }
    let removed = listed.filter { !names.contains($0) }
    let disenrolled = listed.filter { id in known[id].map { $0.isDisenrolled || !$0.hasKeys } == true }
    var response = ValidationResponse(
      configuration: deviceConfiguration, removedProfiles: removed.map(\.text),
      disenrolledProfiles: disenrolled.map(\.text),
      failureCounts: counts.isEmpty ? nil : counts,
      layers: listed.compactMap { id in
        known[id].map {
          ProfileLayers(profileID: id.text, pin: $0.hasPIN, mobileAuth: $0.hasKeys, push: $0.isEnrolledForPush)
        }
      })
    let gone =
      removed.map { Gone(clientID: device.id, profileID: $0) }
      + disenrolled.map { Gone(clientID: device.id, profileID: $0, isKeysAlone: true) }
    for gone in gone.prefix(Revocations.most) {
      guard let notices = await gate.revocations.notices(for: gone) else { continue }
      response.revocations = (response.revocations ?? []) + notices
    }
    return .json(response)
  }

  /// The server's key for an exchange. A key for this profile alone is a new one, unless the one of the last exchange
  /// was never acknowledged.
  private func serverKey(for profile: Profile) async throws -> (key: OpenPGPKey, new: ServerKeyring.NewKey?) {
    guard settings.uniqueServerKeys else { return (try await keyring.shared(), nil) }
    if !profile.hasKeys, let unused = profile.serverKey,
      try await gate.store.read({ try $0.sharedServerKey() }) != unused, let key = try? await keyring.key(unused)
    {
      return (key, nil)
    }
    let new = try keyring.make()
    return (new.key, new)
  }

  private func exchangeKeys(_ request: Request, _ context: ServerContext) async throws -> Response {
    // Before the profile is read: a client can hold its body back.
    let body = try await request.bytes()
    let profile = try await userProfile(request, context)
    guard settings.enabled, settings.enrollment else { throw DeviceAPIError(.enrollmentDisabled) }
    guard profile.knowledge?.isActive != false else {
      throw DeviceAPIError(.actionNotAllowed, "the profile's PIN has not been chosen yet")
    }
    let exchange = try JSON.decode(KeyExchangeRequest.self, from: body)
    let certificate = try Self.certificate(exchange.openPGPCertificate)
    if profile.certificateFingerprint == certificate.fingerprint, let serverKey = profile.serverKey,
      let keyID = profile.keyID
    {
      return keyExchange(try await keyring.key(serverKey), keyID: keyID)
    }
    let mayReplace = !profile.hasKeys || profile.isDisenrolled || settings.pushEnrollmentMode == .override
    guard mayReplace else { throw DeviceAPIError(.alreadyEnrolled) }
    let (key, new) = try await serverKey(for: profile)
    let keyID = Random.uuid()
    let now = gate.clock.now()
    announcer.announce(
      try await gate.store.write { database in
        guard try database.profile(profile.id, on: profile.clientID)?.keyID == profile.keyID else {
          throw DeviceAPIError(.alreadyEnrolled)
        }
        let effects = try database.failOpenTransactions(of: profile.name, now: now)
        try new?.insert(into: database)
        guard
          try database.setKeys(
            of: profile, certificate: certificate.bytes, fingerprint: certificate.fingerprint,
            serverKey: key.certificate.fingerprint, keyID: keyID)
        else { throw DeviceAPIError(.keysNotExchanged) }
        return effects
      })
    return keyExchange(key, keyID: keyID)
  }

  /// The certificate that a device enrolls. One that expires is refused: the device could not be sent its requests any
  /// more.
  /// - Parameter base64: as the device sent it.
  private static func certificate(_ base64: String) throws(DeviceAPIError) -> OpenPGPCertificate {
    do { return try OpenPGPCertificate(parsingLasting: bytes(base64: base64) ?? []) } catch .certificateNotValid {
      throw DeviceAPIError(
        .invalidRequest, "openpgp_certificate must be valid, and its keys and self-signatures must have no expiry")
    } catch {
      throw DeviceAPIError(.invalidRequest, "openpgp_certificate is not a certificate of the profile v4-25519")
    }
  }

  private func keyExchange(_ key: OpenPGPKey, keyID: String) -> Response {
    .json(
      KeyExchangeResponse(
        serverCertificate: key.certificate.bytes.base64, serverFingerprint: key.certificate.fingerprint, keyID: keyID))
  }

  /// The device proves that it can sign and that it received the server's certificate.
  private func acknowledge(_ request: Request, _ context: ServerContext) async throws -> Response {
    let body = try await request.bytes()
    let profile = try await userProfile(request, context)
    guard let serverKey = profile.serverKey, let keyID = profile.keyID,
      let certificate = try keyring.certificate(of: profile)
    else { throw DeviceAPIError(.keysNotExchanged) }
    let acknowledgement = try JSON.decode(KeyAcknowledgement.self, from: body)
    let expected = KeyAcknowledgementContent(
      clientID: profile.clientID.text, profileID: profile.id.text, keyID: keyID)
    let key = try await keyring.key(serverKey)
    guard let sealed = bytes(base64: acknowledgement.proof),
      let opened = try? key.open(sealed, from: certificate, limit: 4096),
      (try? JSON.decode(KeyAcknowledgementContent.self, from: opened)) == expected
    else { throw DeviceAPIError(.answerInvalid, "the proof is not this device's, or not for this key exchange") }
    guard try await gate.store.write({ try $0.acknowledgeKeys(of: profile) }) else {
      throw DeviceAPIError(.keysNotExchanged)
    }
    announcer.deviceLog.about(profile.clientID).info(
      "user \(profile.userID) enrolled keys on device \(profile.clientID)")
    return .noContent
  }

  private enum PushOutcome: Sendable {
    case enrolled(token: String, Effects)
    case userEnrolledElsewhere
  }

  private func enrollForPush(_ request: Request, _ context: ServerContext) async throws -> Response {
    let body = try await request.bytes()
    let caller = try await gate.admit(request)
    let profile = try await caller.profile(ProfileID(context.path("pid")), in: gate.store)
    let transport = try JSON.decode(PushEnrollmentRequest.self, from: body).transport
    guard transport != .mqtt || mailboxes != nil else {
      throw DeviceAPIError(.invalidRequest, "this server has no broker")
    }
    if caller.profileID == nil, let token = profile.pushToken {
      // Only the transport of hints changes, which the device decides alone.
      guard try await gate.store.write({ try $0.setTransport(of: profile, transport) }) else {
        throw DeviceAPIError(.keysNotExchanged)
      }
      return pushEnrollment(profile, token, transport)
    }
    try caller.requireUser(profile.id)
    guard settings.enabled, settings.enrollment else { throw DeviceAPIError(.featureDisabled) }
    guard profile.hasKeys else { throw DeviceAPIError(.keysNotExchanged) }
    let mode = settings.pushEnrollmentMode
    let now = gate.clock.now()
    let outcome = try await gate.store.write { database -> PushOutcome in
      var effects = Effects()
      if mode != .multiple {
        let others = try database.profiles(of: profile.userID).filter {
          $0.clientID != profile.clientID && $0.pushToken != nil
        }
        if mode == .single, !others.isEmpty { return .userEnrolledElsewhere }
        for other in others { effects.add(try database.disenroll(other, .pushOnly, now: now)) }
      }
      let token = profile.pushToken ?? Random.bytes(16).lowercaseHex
      guard try database.setPush(of: profile, token: token, transport: transport) else {
        throw DeviceAPIError(.keysNotExchanged)
      }
      return .enrolled(token: token, effects)
    }
    guard case .enrolled(let token, let effects) = outcome else { throw DeviceAPIError(.userAlreadyEnrolled) }
    announcer.announce(effects)
    announcer.deviceLog.about(profile.clientID).info(
      "user \(profile.userID) enrolled for push on device \(profile.clientID)")
    return pushEnrollment(profile, token, transport)
  }

  private func pushEnrollment(
    _ profile: Profile, _ token: String, _ transport: DeviceConfiguration.Transport
  ) -> Response {
    mailboxes?.set(profile.clientID, isWanted: transport == .mqtt)
    let mailbox = transport == .mqtt ? mailboxes?.topic(of: profile.clientID) : nil
    return .json(PushEnrollmentResponse(pushToken: token, mailbox: mailbox))
  }

  private func disenroll(
    _ request: Request, _ context: ServerContext, _ what: Disenrollment
  ) async throws -> Response {
    let caller = try await gate.admit(request)
    let profile = try await caller.profile(ProfileID(context.path("pid")), in: gate.store)
    let now = gate.clock.now()
    announcer.announce(
      try await gate.store.write { try $0.disenroll(profile, what, byDevice: true, now: now) })
    return .noContent
  }

  /// Idempotent: succeeds also for a profile that is already deleted.
  private func deregister(_ request: Request, _ context: ServerContext) async throws -> Response {
    let clientID = try await gate.admit(request).clientID
    let profileID = ProfileID(try context.path("pid"))
    let now = gate.clock.now()
    announcer.announce(
      try await gate.store.write { database in
        let name = ProfileName(clientID: clientID, id: profileID)
        guard try database.profileNames(on: clientID).contains(name) else { return Effects() }
        return try database.deleteProfile(name, now: now)
      })
    return .noContent
  }

  private func userProfile(_ request: Request, _ context: ServerContext) async throws -> Profile {
    let caller = try await gate.admit(request)
    let profile = try await caller.profile(ProfileID(context.path("pid")), in: gate.store)
    try caller.requireUser(profile.id)
    return profile
  }
}
