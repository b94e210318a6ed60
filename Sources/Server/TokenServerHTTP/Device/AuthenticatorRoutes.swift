// SPDX-License-Identifier: Apache-2.0
import Hummingbird
import Logging
import ReferenceProtocol
import TokenServerCore
import TokenServerStore

/// The routes for the list of a profile's authenticators, their registration and their deregistration.
struct AuthenticatorRoutes: Sendable {
  let gate: DeviceGate
  let authenticators: AuthenticatorVerifier
  let registrations: AuthenticatorRegistrationService

  private var configuration: ServerConfiguration { authenticators.configuration }

  func add(to router: Router<ServerContext>) {
    let base = "/device/v1/profiles/:pid/authenticators"
    router.get(RouterPath(base)) { try await list($0, $1) }
    router.post(RouterPath("\(base)/:aid/registrations")) { try await register($0, $1) }
    router.post(RouterPath("\(base)/:aid/registrations/:rid/activation")) { try await activate($0, $1) }
    router.get(RouterPath("\(base)/:aid/registrations/:rid")) { try await status($0, $1) }
    router.post(RouterPath("\(base)/:aid/deregistration")) { try await deregister($0, $1) }
    router.delete(RouterPath("\(base)/:aid")) { try await deregister($0, $1) }
  }

  private func list(_ request: Request, _ context: ServerContext) async throws -> Response {
    let caller = try await gate.admit(request)
    let profile = try await caller.profile(ProfileID(context.path("pid")), in: gate.store)
    return .json(AuthenticatorList(authenticators: profile.authenticatorEntries(configuration, authenticators.scripts)))
  }

  private func register(_ request: Request, _ context: ServerContext) async throws -> Response {
    // First: a login counts when the body is there.
    let body = try await request.bytes()
    let caller = try await gate.admit(request)
    let name = try name(caller, context)
    guard let key = IdempotencyKey.parse(request.headers[.idempotencyKey]) else {
      throw DeviceAPIError(.invalidRequest, "Idempotency-Key must be a UUID")
    }
    return try await registrations.register(
      name, body, id: key, audience: gate.origin.issuer + request.uri.path, caller: caller)
  }

  private func activate(_ request: Request, _ context: ServerContext) async throws -> Response {
    let body = try await request.bytes()
    let caller = try await gate.admit(request)
    let (name, registrationID) = (try name(caller, context), try context.path("rid"))
    let text = try JSON.decode(AuthenticatorActivation.self, from: body).assertion
    try await registrations.activate(
      name, registrationID, text, audience: gate.origin.issuer + request.uri.path, caller: caller)
    return .noContent
  }

  private func status(_ request: Request, _ context: ServerContext) async throws -> Response {
    let caller = try await gate.admit(request)
    let (name, registrationID) = (try name(caller, context), try context.path("rid"))
    _ = try await caller.profile(name.profile.id, in: gate.store)
    let record = try await gate.store.read { try $0.authenticator(name) }
    let isThis = record?.registrationID == registrationID
    return .json(
      AuthenticatorRegistrationStatus(state: isThis ? record?.state(at: gate.clock.now()) ?? .void : .void))
  }

  /// Idempotent. The user must have logged in with the PIN, or with this authenticator.
  private func deregister(_ request: Request, _ context: ServerContext) async throws -> Response {
    let body = try await request.bytes()
    let caller = try await gate.admit(request)
    let name = try name(caller, context)
    let profile = try await caller.profile(name.profile.id, in: gate.store)
    try caller.requirePINLogin(profile, orWith: name.id)
    guard name.id != AuthenticatorEntry.pinIdentifier else { throw DeviceAPIError(.pinNotRemovable) }
    if !body.isEmpty {
      let order = try JSON.decode(AuthenticatorDeregistration.self, from: body)
      guard CustomData.parse(order.data) != nil else { throw AuthenticatorRegistrationService.badData }
    }
    guard
      configuration.authenticator(name.id) != nil || profile.authenticators.contains(where: { $0.id == name.id })
    else { throw DeviceAPIError(.authenticatorInvalid, "there is no such authenticator") }
    let now = gate.clock.now()
    let effects = try await authenticators.serialized(with: name) {
      try await gate.store.write { try $0.deregister(name, byServer: false, now: now) }
    }
    authenticators.announcer.announce(effects)
    authenticators.announcer.deviceLog.about(profile.clientID).info(
      "authenticator \(name.id) of profile \(profile.id) on device \(profile.clientID) deregistered by the device")
    return .noContent
  }

  private func name(_ caller: DeviceGate.Caller, _ context: ServerContext) throws -> AuthenticatorName {
    AuthenticatorName(
      profile: ProfileName(clientID: caller.clientID, id: ProfileID(try context.path("pid"))),
      id: try context.path("aid"))
  }
}

extension Profile {
  /// The list for the device: what is registered, and what the server offers and the device has announced.
  func authenticatorEntries(
    _ configuration: ServerConfiguration, _ scripts: any ScriptRunner
  ) -> [AuthenticatorEntry] {
    let usable = configuration.usable(with: scripts)
    var entries: [AuthenticatorEntry] = []
    if hasPIN {
      entries.append(
        .init(
          identifier: AuthenticatorEntry.pinIdentifier, name: "PIN", type: .pin, registered: true, supported: true))
    }
    var others = authenticators.map { registered in
      let authenticator = configuration.offered(registered.id, kind: registered.kind)
      return AuthenticatorEntry(
        identifier: registered.id, name: authenticator?.name ?? registered.id,
        type: registered.kind == .biometric ? .biometric : .custom, registered: true,
        supported: usable.offered(registered.id, kind: registered.kind).map { capabilities?.includes($0) == true }
          ?? false)
    }
    for authenticator in usable.authenticators
    where usable.isEnabled(authenticator.kind) && capabilities?.includes(authenticator) == true && hasPIN
      && !authenticators.contains(where: { $0.id == authenticator.id })
    {
      others.append(
        AuthenticatorEntry(
          identifier: authenticator.id, name: authenticator.name, type: authenticator.entryKind, registered: false,
          supported: true))
    }
    return entries + others.sorted { $0.identifier < $1.identifier }
  }
}
