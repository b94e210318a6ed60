// SPDX-License-Identifier: Apache-2.0
package import Boards
import ControlProtocol
import FrontPanel
import Glibc
import Logging
import MobileAuth
package import NetworkDaemon
import RelayProtocol
import ServerBackends
import ServiceLifecycle
import Threads
package import Vault

/// The service on one board: receives requests, shows them on the panel, sends the answers, and answers commands.
package struct Daemon: Sendable {
  private let vault: Vault
  private let profile: BoardProfile
  private let configuration: Configuration
  private let controlSocket: String
  private let network: NetworkAccess

  /// - Parameter controlSocket: the path of the socket for commands.
  package init(
    _ vault: Vault, on profile: BoardProfile, _ configuration: Configuration, controlSocket: String,
    network: NetworkAccess
  ) {
    self.network = network
    self.vault = vault
    self.profile = profile
    self.configuration = configuration
    self.controlSocket = controlSocket
  }

  /// Runs until SIGTERM, SIGINT or SIGHUP.
  /// - Parameters:
  ///   - manager: gets a message at intervals while the service works.
  ///   - journalStream: the value of `JOURNAL_STREAM`: whether standard error is connected to the journal.
  ///   - onReady: called when commands are accepted.
  ///   - onStop: called at such a signal.
  package func run(
    under manager: ServiceManager, journalStream: String?, onReady: @escaping @Sendable () -> Void,
    onStop: @escaping @Sendable () -> Void
  ) async throws {
    let logger = Logger.ofService(journalStream: journalStream)
    let (events, reporting) = AsyncStream.makeStream(of: TokenEvent.self, bufferingPolicy: .bufferingNewest(256))
    let environment = TokenEnvironment.system { reporting.yield($0) }
    // The device process may be in a network namespace of its own, which udev's messages do not reach.
    let board = try RunningBoard(profile, clock: environment.clock, hearsUdev: network.relay == nil)
    if profile.kind == .simulated {
      logger.warning("button and LED are simulated: do not approve real requests with this board")
    }
    let broker = try brokerSubscriber(in: environment, logger)
    var context = BackendContext(
      vault, configuration, board, in: environment, makeHTTPTransport: network.makeHTTPTransport)
    context.makeEnrollmentTransport = network.makeEnrollmentTransport
    context.hintBroker = broker
    let backends = Backends(vault, context)
    let service = TokenService(
      panel: board.panel, backends: backends, broker: broker, recordsTexts: configuration.recordsTexts,
      logger: logger, events: events, onReady: onReady)
    let accounts = AccountService(
      service: service, backends: backends, veryLongHold: board.profile.timing.reportHold
    ) {
      kill(getpid(), SIGTERM)
    }
    let handler = ControlRequestHandler(
      service: service, backends: backends, board: board, accounts: accounts, networkSocket: network.relay?.path)
    let pushes = try pushListener(in: environment, logger) { service.wakePolls() }
    let processWatch = network.relay.map { relay in
      NetworkProcessWatch(
        relay: relay, environment: environment, logger: LimitedLog(logger, clock: environment.clock)
      ) { service.noteNetwork(outage: $0) }
    }
    let control: ControlServer
    do { control = try ControlServer(path: controlSocket) { try await handler.answer($0, $1) } } catch {
      throw CommandError(.unavailable, "\(error)")
    }
    let watchdog = manager.watchdogInterval.map { interval in
      Watchdog(interval: interval, environment: environment, subject: service, panel: board.panel) {
        manager.notify("WATCHDOG=1")
      }
    }
    let group = ServiceGroup([
      PanelService(panel: board.panel),
      HardwareWatch(panel: board.panel, environment: environment, logger: logger), control, service, pushes,
      processWatch, watchdog,
    ])
    MainThread.onStopSignal {
      onStop()
      Task { await group.triggerGracefulShutdown() }
    }
    defer { MainThread.onStopSignal(nil) }
    try await group.run()
    logger.info("stopped")
  }

  /// The subscriber at the broker; nil if none is configured.
  private func brokerSubscriber(
    in environment: TokenEnvironment, _ logger: Logger
  ) throws(CommandError) -> BrokerSubscriber? {
    guard let settings = configuration.mqtt else { return nil }
    return BrokerSubscriber(
      settings: settings, credentials: try settings.credentials(), clientID: vault.brokerClientID,
      connector: network.subscriptions,
      environment: environment, logger: logger)
  }

  /// The receiver of login hints; nil if none is configured.
  private func pushListener(
    in environment: TokenEnvironment, _ logger: Logger, onHint: @escaping @Sendable () -> Void
  ) throws(CommandError) -> (any Service)? {
    guard let address = configuration.push.listen else { return nil }
    guard let relay = network.relay else {
      do {
        return PushListenerService(listener: try PushListener(at: address, onHint: onHint))
      } catch { throw CommandError(.unavailable, "\(error)") }
    }
    return RelayedHints(
      relay: relay, address: address, environment: environment,
      logger: LimitedLog(logger, clock: environment.clock), onHint: onHint)
  }
}

/// Runs the panel as a service; when it ends, the LED is dark.
private struct PanelService: Service {
  let panel: FrontPanel

  func run() async throws { await cancelWhenGracefulShutdown { await panel.run() } }
}

/// Runs the push listener as a service.
private struct PushListenerService: Service {
  let listener: PushListener

  func run() async throws { try await cancelWhenGracefulShutdown { try await listener.run() } }
}
