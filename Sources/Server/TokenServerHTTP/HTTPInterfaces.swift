// SPDX-License-Identifier: Apache-2.0
import Hummingbird
import Logging
package import TokenServerCore
package import TokenServerStore

/// The HTTP interfaces of the server: the device API, the OAuth endpoints and the portal APIs.
package struct HTTPInterfaces: Sendable {
  let store: Store
  let hasher: KeyedHasher
  let configuration: ServerConfiguration
  let origin: Origin
  let clock: ServerClock
  let announcer: any Announcer
  let hub: EventHub
  let expiry: any ExpirySchedule
  /// Nil without a broker.
  let mailboxes: (any Mailboxes)?
  let scripts: any ScriptRunner
  /// How many servers use the database.
  let servers: ServerCount
  let readiness: Readiness
  let sources = ProxiedSources()

  package init(
    store: Store, hasher: KeyedHasher, configuration: ServerConfiguration, origin: Origin, clock: ServerClock,
    announcer: any Announcer, hub: EventHub, expiry: any ExpirySchedule, mailboxes: (any Mailboxes)?,
    scripts: any ScriptRunner, servers: ServerCount = ServerCount(), readiness: Readiness = Readiness()
  ) {
    self.store = store
    self.hasher = hasher
    self.configuration = configuration
    self.origin = origin
    self.clock = clock
    self.announcer = announcer
    self.hub = hub
    self.expiry = expiry
    self.mailboxes = mailboxes
    self.scripts = scripts
    self.servers = servers
    self.readiness = readiness
  }

  func router() -> Router<ServerContext> {
    let keyring = ServerKeyring(store: store.records, hasher: hasher)
    let revocations = Revocations(store: store.records, keyring: keyring, origin: origin)
    let router = Router(context: ServerContext.self)
    let allowed = AllowedMethods()
    router.add(
      middleware: OuterMiddleware(
        origin: origin, nonces: hub.nonces, revocations: revocations, sources: sources, allowed: allowed,
        logsAccess: configuration.accessLog, log: announcer.deviceLog))
    let gate = gate(revocations)
    let pins = PINAttemptVerifier(
      store: store.records, announcer: announcer, clock: clock, limit: configuration.application.maxPINAttempts)
    let authenticators = AuthenticatorVerifier(
      store: store.records, announcer: announcer, clock: clock, configuration: configuration, scripts: scripts)
    addOAuthRoutes(to: router, gate, keyring, pins, authenticators)
    addDeviceRoutes(to: router, gate, keyring, pins, authenticators)
    addPortalRoutes(to: router, gate)
    allowed.learn(router)
    for route in router.routes {
      ServerMetrics.begin(route: route.path.description, method: route.method.rawValue)
    }
    return router
  }

  private func gate(_ revocations: Revocations) -> DeviceGate {
    let perSecond = Double(configuration.limits.deviceRequestsPerSecond)
    return DeviceGate(
      store: store, hasher: hasher, origin: origin, clock: clock, nonces: hub.nonces,
      seenProofs: memory(
        lifetime: .seconds(300),
        ReplayCache(
          lifetime: .seconds(300), capacity: 500_000, share: 62_500)),
      // An assertion is valid for at most twenty minutes: ten of lifetime, ten of clock error.
      seenAssertions: memory(
        lifetime: .seconds(1200),
        ReplayCache(
          lifetime: .seconds(1200), capacity: 500_000, share: 5_000, reserve: 250_000, reservedShare: 50)),
      limiter: RateLimiter(perSecond: perSecond, burst: 2 * perSecond, servers: servers), revocations: revocations)
  }

  /// - Parameters:
  ///   - lifetime: how long an identifier is remembered.
  ///   - own: the memory of this server.
  private func memory(lifetime: Duration, _ own: ReplayCache) -> any ReplayMemory {
    store.sharedBy == nil ? own : SharedReplayMemory(store: store, clock: clock, lifetime: lifetime, own: own)
  }

  private func addOAuthRoutes(
    to router: Router<ServerContext>, _ gate: DeviceGate, _ keyring: ServerKeyring, _ pins: PINAttemptVerifier,
    _ authenticators: AuthenticatorVerifier
  ) {
    let codes = ActivationService(
      store: store, hasher: hasher, keyring: keyring, clock: clock, announcer: announcer, expiry: expiry,
      fleetLimit: configuration.limits.devicesPerFleetToken, servers: servers)
    let tokens = TokenEndpoint(
      gate: gate, codes: codes, logins: LoginService(gate: gate, pins: pins),
      authenticatorLogins: AuthenticatorLoginService(gate: gate, authenticators: authenticators),
      wantsPIN: configuration.application.pin)
    OAuthRoutes(gate: gate, codes: codes, tokens: tokens, announcer: announcer).add(to: router)
  }

  private func addDeviceRoutes(
    to router: Router<ServerContext>, _ gate: DeviceGate, _ keyring: ServerKeyring, _ pins: PINAttemptVerifier,
    _ authenticators: AuthenticatorVerifier
  ) {
    ProfileRoutes(
      gate: gate, keyring: keyring, announcer: announcer, mailboxes: mailboxes, configuration: configuration
    ).add(to: router)
    PINRoutes(gate: gate, pins: pins, log: announcer.deviceLog).add(to: router)
    PINChangeRoutes(gate: gate, keyring: keyring, pins: pins, log: announcer.deviceLog).add(to: router)
    let deliveries = Deliveries(store: store, log: announcer.deviceLog)
    RequestRoutes(gate: gate, keyring: keyring, pins: pins, deliveries: deliveries).add(to: router)
    let answers = AnswerService(
      store: store.records, keyring: keyring, pins: pins, authenticators: authenticators, revocations: gate.revocations,
      announcer: announcer,
      origin: origin, notMeHold: .seconds(configuration.mobileAuthentication.notMeHoldSeconds))
    AnswerRoutes(gate: gate, answers: answers).add(to: router)
    AuthenticatorRoutes(
      gate: gate, authenticators: authenticators,
      registrations: AuthenticatorRegistrationService(
        gate: gate, keyring: keyring, pins: pins, authenticators: authenticators)
    ).add(to: router)
    EventRoutes(gate: gate, hub: hub, deliveries: deliveries).add(to: router)
  }

  private func addPortalRoutes(to router: Router<ServerContext>, _ device: DeviceGate) {
    let starter = TransactionStarter(
      store: store.records, origin: origin, clock: clock, announcer: announcer, expiry: expiry,
      configuration: configuration, usable: { [configuration, scripts] in configuration.usable(with: scripts) })
    let portal = PortalGate(store: store, hasher: hasher)
    PortalRoutes(gate: portal, starter: starter).add(to: router)
    let perSecond = Double(configuration.limits.deviceRequestsPerSecond)
    IntrospectionRoutes(
      gate: portal, device: device, origin: origin, clock: clock, application: configuration.application,
      platform: configuration.mobileAuthentication.portalPlatformAlias,
      limiter: RateLimiter(perSecond: perSecond, burst: 2 * perSecond, servers: servers)
    ).add(to: router)
    EndUserRoutes(gate: portal, configuration: configuration, clock: clock, announcer: announcer).add(to: router)
    PortalDescription(origin: origin).add(to: router)
  }
}
