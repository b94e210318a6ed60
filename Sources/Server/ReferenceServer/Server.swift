// SPDX-License-Identifier: Apache-2.0
import Logging
import NIOPosix
import ServiceLifecycle
import TokenServerCore
import TokenServerHTTP
import TokenServerStore
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
    let clock = ServerClock.system
    let hub = EventHub()
    let callbacksDue = AsyncSignal()
    let mailboxes = configuration.mqtt.map { settings in
      MailboxPublisher(settings, authorityFile: settings.authorityFile.map(directory.file), hasher: hasher, log: log) {
        .random(in: 0..<1)
      }
    }
    let found = try await store.write { try $0.setAsideUnreadable(now: clock.now()) }
    for warning in found.warnings { log.warning("\(warning)") }
    try await mailboxes?.restore(from: store)
    let announcer = ServerAnnouncer(hub: hub, mailboxPublisher: mailboxes, callbacks: callbacksDue, log: log)
    let expiry = ExpiryTimer(
      store: store, announcer: announcer, clock: clock,
      retentionHours: configuration.mobileAuthentication.resultRetentionHours)
    let origin = Origin()
    let interfaces = HTTPInterfaces(
      store: store, hasher: hasher, configuration: configuration, origin: origin, clock: clock, announcer: announcer,
      hub: hub, expiry: expiry, mailboxes: mailboxes,
      scripts: ScriptProcesses(directory: directory, log: log))
    let httpService = try interfaces.service(
      ServerCertificate(
        certificateFile: directory.file(configuration.certificateFile),
        privateKeyFile: directory.file(configuration.privateKeyFile)),
      maxConnections: try DescriptorLimit.raise(for: configuration.limits, log: log)
    ) { [configuration] port in
      let issuer = configuration.issuer ?? configuration.issuer(onPort: port)
      origin.resolve(issuer)
      do { try await store.write { try $0.setIssuer(issuer) } } catch { log.error("issuer not stored: \(error)") }
      ready(issuer)
    }
    let worker = CallbackWorker(
      store: store,
      delivery: CallbackDelivery(
        configured: configuration.callbacks, allowed: configuration.callbackPrivateAddresses,
        eventLoopGroup: MultiThreadedEventLoopGroup.singleton),
      clock: clock, jitter: { .random(in: -1...1) }, wakeUp: callbacksDue, log: log)
    let outbox = OutboxService(
      store: store, wakePipe: WakePipe(path: directory.wakePipeFile), announcer: announcer, clock: clock)
    let report = UnreadableRowReport(store: store, log: log)
    var services = ServiceGroupConfiguration(
      services: [worker, expiry, outbox, Heartbeat(hub: hub), report, httpService] + (mailboxes.map { [$0] } ?? []),
      gracefulShutdownSignals: [.sigterm, .sigint], logger: log)
    services.maximumGracefulShutdownDuration = .milliseconds(1200)
    try await ServiceGroup(configuration: services).run()
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
