// SPDX-License-Identifier: Apache-2.0
import Hummingbird
import HummingbirdCore
import HummingbirdTLS
import Logging
import NIOCore
import NIOPosix
import NIOSSL
import Secrets
import ServiceLifecycle
import UnixSignals

/// Assembles the server and runs it until SIGTERM or SIGINT.
struct Server {
  let directory: ServerDirectory
  var configuration: ServerConfiguration

  /// - Parameter ready: called once, with the issuer, when connections are accepted.
  func run(ready: @escaping @Sendable (String) -> Void) async throws {
    let log = Logger(label: "token-server")
    let store = try Store(path: directory.databaseFile)
    let hasher = KeyedHasher(try directory.pepper())
    let origin = Origin()
    let clock = ServerClock.system
    let hub = EventHub()
    let callbacksDue = AsyncSignal()
    let mailboxes = configuration.mqtt.map { settings in
      MailboxPublisher(settings, authorityFile: settings.authorityFile.map(directory.file), hasher: hasher, log: log)
    }
    let found = try await store.write { try $0.setAsideUnreadable(nowMs: clock.nowMs()) }
    for warning in found.warnings { log.warning("\(warning)") }
    try await mailboxes?.restore(from: store)
    let announcer = Announcer(hub: hub, mailboxPublisher: mailboxes, callbacks: callbacksDue, log: log)
    let expiry = ExpiryTimer(
      store: store, announcer: announcer, clock: clock,
      retentionHours: configuration.mobileAuthentication.resultRetentionHours)
    let nonces = DPoPNonces()
    let perSecond = Double(configuration.limits.deviceRequestsPerSecond)
    let keyring = ServerKeyring(store: store, hasher: hasher)
    let revocations = Revocations(store: store, keyring: keyring, origin: origin)
    let gate = DeviceGate(
      store: store, hasher: hasher, origin: origin, clock: clock, nonces: nonces,
      seenProofs: ReplayCache(lifetimeMs: 300_000, capacity: 500_000, share: 62_500),
      limiter: RateLimiter(perSecond: perSecond, burst: 2 * perSecond), revocations: revocations)
    let router = Router(context: ServerContext.self)
    router.add(
      middleware: OuterMiddleware(
        origin: origin, nonces: nonces, revocations: revocations, logsAccess: configuration.accessLog))
    addDeviceRoutes(to: router, gate: gate, keyring: keyring, announcer: announcer, expiry: expiry)
    let starter = TransactionStarter(
      store: store, origin: origin, clock: clock, announcer: announcer, expiry: expiry, configuration: configuration)
    let portal = PortalGate(store: store, hasher: hasher)
    PortalRoutes(gate: portal, starter: starter).add(to: router)
    EndUserRoutes(gate: portal, configuration: configuration, clock: clock, announcer: announcer).add(to: router)

    let group = MultiThreadedEventLoopGroup.singleton
    let connections = ConnectionTable(
      limit: min(configuration.limits.connections, try DescriptorLimit.raise(for: configuration.limits, log: log)),
      limitPerSource: configuration.limits.connectionsPerSource)
    let worker = CallbackWorker(
      store: store,
      delivery: CallbackDelivery(
        configured: configuration.callbacks, allowed: configuration.callbackPrivateAddresses, eventLoopGroup: group),
      clock: clock, wakeUp: callbacksDue, log: log)
    let frontDoor = HTTPService(
      application: Application(
        router: router, server: try tlsServer(connections),
        configuration: .init(address: .hostname(configuration.listen, port: configuration.port), backlog: 4096),
        onServerRunning: { [configuration] channel in
          let issuer = configuration.issuer ?? configuration.issuer(onPort: channel.localAddress?.port ?? 0)
          origin.resolve(issuer)
          do { try await store.write { try $0.setIssuer(issuer) } } catch { log.error("issuer not stored: \(error)") }
          ready(issuer)
        }, eventLoopGroupProvider: .shared(group), logger: Logger(label: "http")),
      hub: hub)
    let outbox = OutboxService(
      store: store, wakePipe: WakePipe(path: directory.wakePipeFile), announcer: announcer, clock: clock)
    let report = UnreadableRowReport(store: store, log: log)
    var services = ServiceGroupConfiguration(
      services: [worker, expiry, outbox, Heartbeat(hub: hub), report, frontDoor] + (mailboxes.map { [$0] } ?? []),
      gracefulShutdownSignals: [.sigterm, .sigint], logger: log)
    services.maximumGracefulShutdownDuration = .milliseconds(1200)
    try await ServiceGroup(configuration: services).run()
  }

  private func addDeviceRoutes(
    to router: Router<ServerContext>, gate: DeviceGate, keyring: ServerKeyring, announcer: Announcer,
    expiry: ExpiryTimer
  ) {
    let pins = PINVerifier(
      store: gate.store, announcer: announcer, clock: gate.clock, limit: configuration.application.maxPINAttempts)
    let codes = ActivationService(
      store: gate.store, hasher: gate.hasher, keyring: keyring, clock: gate.clock, announcer: announcer,
      expiry: expiry, fleetLimit: configuration.limits.devicesPerFleetToken)
    // An assertion is valid for at most twenty minutes: ten of lifetime, ten of clock error.
    let tokens = TokenEndpoint(
      gate: gate, codes: codes, logins: LoginService(gate: gate, pins: pins), wantsPIN: configuration.application.pin,
      seenAssertions: ReplayCache(lifetimeMs: 1_200_000, capacity: 500_000, share: 5_000))
    OAuthRoutes(gate: gate, codes: codes, tokens: tokens, announcer: announcer).add(to: router)
    ProfileRoutes(gate: gate, keyring: keyring, announcer: announcer, configuration: configuration).add(to: router)
    PINRoutes(gate: gate, pins: pins, log: announcer.log).add(to: router)
    PINChangeRoutes(gate: gate, keyring: keyring, pins: pins, log: announcer.log).add(to: router)
    RequestRoutes(gate: gate, keyring: keyring, pins: pins).add(to: router)
    AnswerRoutes(
      gate: gate, keyring: keyring, pins: pins, announcer: announcer,
      notMeHoldMs: Int64(configuration.mobileAuthentication.notMeHoldSeconds) * 1000
    ).add(to: router)
    EventRoutes(gate: gate, hub: announcer.hub).add(to: router)
  }

  private func tlsServer(_ connections: ConnectionTable) throws -> HTTPServerBuilder {
    let chain = try NIOSSLCertificate.fromPEMFile(directory.file(configuration.certificateFile))
    let key = try NIOSSLPrivateKey(file: directory.file(configuration.privateKeyFile), format: .pem)
    var tls = TLSConfiguration.makeServerConfiguration(
      certificateChain: chain.map { .certificate($0) }, privateKey: .privateKey(key))
    tls.minimumTLSVersion = .tlsv12
    tls.applicationProtocols = ["http/1.1"]
    let limits = configuration.limits
    let http = HTTP1Channel.Configuration(
      additionalChannelHandlers: [ConnectionGuard(table: connections, limits: limits)],
      httpDecoderConfiguration: .init(
        maxHeaderFieldSize: 16 * 1024, maxHeaderListSize: 32 * 1024, maxHeaderFieldCount: 64))
    return try .tls(.http1(configuration: http), tlsConfiguration: tls)
  }
}

/// The HTTP server as a service. Its shutdown waits for open responses, so event streams must end first.
private struct HTTPService<Responder: HTTPResponder>: Service
where Responder.Context: InitializableFromSource<ApplicationRequestContextSource> {
  let application: Application<Responder>
  let hub: EventHub

  func run() async throws {
    try await withGracefulShutdownHandler {
      try await application.run()
    } onGracefulShutdown: {
      hub.close()
    }
  }
}

extension ServerConfiguration {
  /// The default issuer, if none is configured.
  func issuer(onPort port: Int) -> String {
    let host =
      switch listen {
      case "0.0.0.0", "::": "localhost"
      case let address where address.contains(":"): "[\(address)]"
      default: listen
      }
    return "https://\(host):\(port)"
  }
}
