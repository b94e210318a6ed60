// SPDX-License-Identifier: Apache-2.0
import Logging
import NIOPosix
import Secrets
import ServiceLifecycle
import Synchronization
import TokenServerCore
import TokenServerHTTP
import TokenServerMetrics
import TokenServerStore
import UnixSignals

/// Assembles the server and runs it until SIGTERM or SIGINT.
struct Server {
  let directory: ServerDirectory
  var configuration: ServerConfiguration
  /// The values of this process's metrics.
  let registry: PrometheusRegistry
  /// The time for open requests at the end; then they are canceled.
  private static let gracefulTime = Duration.milliseconds(1000)
  private let readiness = Readiness()
  private let log = Logger(label: "token-server")

  init(directory: ServerDirectory, configuration: ServerConfiguration, registry: PrometheusRegistry) {
    self.directory = directory
    self.configuration = configuration
    self.registry = registry
  }

  /// - Parameter ready: called once, with the issuer, when connections are accepted.
  func run(ready: @escaping @Sendable (String) -> Void) async throws {
    let store = try await openStore()
    let hasher = try await hasher(of: store)
    let clock = ServerClock.system
    let membership = store.sharedBy.map { Membership(store: store, sharing: $0, clock: clock, log: log) }
    let mailboxes = mailboxes(hasher, server: store.sharedBy?.server ?? "")
    let eventSharing = EventSharing(store: store, mailboxes: mailboxes, clock: clock, log: log)
    let hub = membership.map { EventHub(with: $0, hasher, clock) } ?? EventHub()
    let callbacksDue = AsyncSignal()
    try await logWarnings(about: store, clock)
    try await mailboxes?.restore(from: store)
    let deviceLog = DeviceLog(log)
    let announcer = ServerAnnouncer(
      hub: hub, mailboxPublisher: mailboxes, callbacks: callbacksDue, otherServers: eventSharing, log: log,
      deviceLog: deviceLog)
    let expiry = ExpiryTimer(
      store: store, announcer: announcer, clock: clock,
      retentionHours: configuration.mobileAuthentication.resultRetentionHours)
    let origin = Origin()
    let scripts = ScriptProcesses(directory: directory, log: deviceLog)
    let interfaces = HTTPInterfaces(
      store: store, hasher: hasher, configuration: configuration, origin: origin, clock: clock, announcer: announcer,
      hub: hub, expiry: expiry, mailboxes: mailboxes,
      scripts: BuiltInVerifiers(besides: scripts),
      servers: membership?.servers ?? ServerCount(), readiness: readiness)
    defer { scripts.end() }
    // Ends when health checks and metrics have their address.
    let (beforeReady, operationsListen) = AsyncStream.makeStream(of: Void.self)
    let certificate = directory.file(configuration.certificateFile)
    let httpService = try interfaces.service(
      ServerCertificate(
        certificateFile: certificate,
        privateKeyFile: directory.file(configuration.privateKeyFile)),
      maxConnections: DescriptorLimit.raise(for: configuration.limits, log: log)
    ) { [configuration, readiness] port in
      for await _ in beforeReady {}
      guard !Task.isCancelled else { return }
      let issuer = configuration.issuer ?? configuration.issuer(onPort: port)
      logAddress(issuer, port, certificate, now: clock.now())
      origin.resolve(issuer)
      do { try await store.write { try $0.setIssuer(issuer) } } catch { log.error("issuer not stored: \(error)") }
      readiness.begin()
      ready(issuer)
    }
    try await membership?.join()
    try await directory.verifyPepper(hasher, of: store)
    let worker = callbackWorker(store, clock, callbacksDue)
    let events = try await events(eventSharing, announcer, store, clock)
    let report = UnreadableRowReport(store: store, log: log)
    // The first to start is the last to end: health checks answer while the server drains.
    let operations = operationsService(store, hub, clock, membership) { operationsListen.finish() }
    let heartbeats = membership.map { Membership.Heartbeats(membership: $0, hub: hub, mailboxes: mailboxes) }
    // Others, and the broker, learn of this server's last events until it has answered the last request.
    let all: [(any Service)?] = [
      operations, heartbeats, mailboxes, eventSharing, worker, expiry, events, Heartbeat(hub: hub), report, httpService,
    ]
    var services = ServiceGroupConfiguration(services: all.compactMap { $0.map(NamedService.init) }, logger: log)
    services.maximumGracefulShutdownDuration = Self.gracefulTime
    try await run(ServiceGroup(configuration: services), hub)
  }

  private func logAddress(_ issuer: String, _ port: Int, _ certificate: String, now: Timestamp) {
    if configuration.issuer != nil { log.notice("accepts connections at \(configuration.listen), port \(port)") }
    for warning in CertificateCheck.warnings(about: certificate, at: issuer, now: now) { log.warning("\(warning)") }
  }

  /// Waits for PostgreSQL. Meanwhile no address is open, and SIGTERM ends the process at once: it is not trapped yet.
  private func openStore() async throws -> Store {
    let wait = DatabaseWait(log: log) { try await Task.sleep(for: $0) }
    return try await wait.store { [directory, configuration] in
      try await directory.openStore(configuration.database)
    }
  }

  /// Reads the events of commands and of other servers.
  private func events(
    _ sharing: EventSharing?, _ announcer: ServerAnnouncer, _ store: Store, _ clock: ServerClock
  ) async throws -> any Service {
    if let sharing { return try await EventSharing.Reader(of: sharing, announcer: announcer) }
    return OutboxService(
      store: store, wakePipe: WakePipe(path: directory.wakePipeFile), announcer: announcer, clock: clock)
  }

  private func hasher(of store: Store) async throws -> KeyedHasher {
    let peppers = try await directory.peppers(of: store)
    if peppers.isRotationOpen {
      log.warning("the pepper is not replaced yet: stop the server, and run \"token-server pepper rotate\" again")
    }
    return peppers.hasher
  }

  private func logWarnings(about store: Store, _ clock: ServerClock) async throws {
    if try await store.read({ try $0.hasUnreadable() }) {
      let found = try await store.write { try $0.setAsideUnreadable(now: clock.now()) }
      for warning in found.warnings { log.warning("\(warning)") }
    }
    for warning in directory.exposedSecrets(configuration) { log.warning("\(warning)") }
    for warning in ScriptProcesses.warnings(about: configuration, in: directory) { log.warning("\(warning)") }
  }

  /// - Parameter ready: called once, when health checks and metrics have their address, or at once if they have none.
  private func operationsService(
    _ store: Store, _ hub: EventHub, _ clock: ServerClock, _ membership: Membership?,
    ready: @escaping @Sendable () -> Void
  ) -> (any Service)? {
    guard let settings = configuration.operations else {
      ready()
      return nil
    }
    return OperationsInterface(
      store: store, hub: hub, readiness: readiness, registry: registry, clock: clock,
      countsAsRunning: { membership?.countsAsRunning() ?? true }
    ).service(settings) { [log] port in
      log.notice("health checks and metrics on port \(port)")
      ready()
    }
  }

  private func callbackWorker(_ store: Store, _ clock: ServerClock, _ due: AsyncSignal) -> CallbackWorker {
    CallbackWorker(
      store: store,
      delivery: CallbackDelivery(
        configured: configuration.callbacks, allowed: configuration.callbackPrivateAddresses,
        eventLoopGroup: MultiThreadedEventLoopGroup.singleton),
      clock: clock, jitter: { .random(in: -1...1) }, wakeUp: due, log: log)
  }

  /// - Parameter server: the id among several servers; empty for a single one.
  private func mailboxes(_ hasher: KeyedHasher, server: String) -> MailboxPublisher? {
    configuration.mqtt.map { settings in
      MailboxPublisher(
        settings, authorityFile: settings.authorityFile.map(directory.file), hasher: hasher, server: server, log: log
      ) { .random(in: 0..<1) }
    }
  }

  /// Runs the services until SIGTERM or SIGINT and the time to drain are over; a second signal ends that time. SIGHUP
  /// is such a signal only if the standard input is a terminal, which may be closed then: systemd would not start the
  /// server again. Does not wait for services that do not end: a request may wait for a database that does not answer.
  private func run(_ group: ServiceGroup, _ hub: EventHub) async throws {
    // From here on: a signal while the services start must not end the process without a result.
    let signals = await UnixSignalsSequence(trapping: .sigterm, .sigint, .sighup)
    let hasTerminal = isatty(STDIN_FILENO) == 1
    let ended = AsyncSignal()
    let outcome = Mutex(Result<Void, any Error>.success(()))
    Task {
      do { try await group.run() } catch { outcome.withLock { $0 = .failure(error) } }
      ended.ring()
    }
    let stopping = Task {
      var draining: Task<Void, Never>?
      for await signal in signals {
        if signal == .sighup, !hasTerminal {
          log.notice("SIGHUP: no file is read again while the server runs; restart it for that")
          continue
        }
        readiness.drain()
        let drainTime = Duration.seconds(configuration.drainSeconds)
        guard draining == nil, drainTime > .zero else { break }
        log.notice("draining for \(drainTime.components.seconds) s")
        draining = Task {
          await hub.drain(within: drainTime)
          await end(group, ended)
        }
      }
      draining?.cancel()
      await end(group, ended)
    }
    await ended.wait(for: nil)
    stopping.cancel()
    try outcome.withLock(\.self).get()
  }

  /// - Parameter ended: rings when the services are given up.
  private func end(_ group: ServiceGroup, _ ended: AsyncSignal) async {
    await group.triggerGracefulShutdown()
    try? await Task.sleep(for: Self.gracefulTime + .seconds(1))
    guard !Task.isCancelled else { return }
    log.warning("requests that are still under way are given up")
    ended.ring()
  }
}

extension EventHub {
  /// The hub of one of several servers.
  fileprivate convenience init(with membership: Membership, _ hasher: KeyedHasher, _ clock: ServerClock) {
    let key = SecretBytes(copying: hasher.hash("key", for: .proofNonces))
    let nonces = DPoPNonces(sharedKey: key) { .milliseconds(clock.now().milliseconds) }
    self.init(nonces: nonces) { membership.note($0, isConnected: $1) }
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
