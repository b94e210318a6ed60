// SPDX-License-Identifier: Apache-2.0
package import Boards
import ControlProtocol
import FrontPanel
import Logging
import MobileAuth
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

  /// - Parameter controlSocket: the path of the socket for commands.
  package init(_ vault: Vault, on profile: BoardProfile, _ configuration: Configuration, controlSocket: String) {
    self.vault = vault
    self.profile = profile
    self.configuration = configuration
    self.controlSocket = controlSocket
  }

  /// Runs until SIGTERM or SIGINT.
  /// - Parameters:
  ///   - manager: gets a message at intervals while the service works.
  ///   - onReady: called when commands are accepted.
  ///   - onStop: called at SIGTERM or SIGINT.
  package func run(
    under manager: ServiceManager, onReady: @escaping @Sendable () -> Void, onStop: @escaping @Sendable () -> Void
  ) async throws {
    var logger = Logger(label: "approval-token") { PlainLog($0) }
    logger.logLevel = .info
    let (events, reporting) = AsyncStream.makeStream(of: TokenEvent.self, bufferingPolicy: .bufferingNewest(256))
    let environment = TokenEnvironment.system { reporting.yield($0) }
    let board = try RunningBoard(profile, clock: environment.clock)
    if profile.kind == .simulated {
      logger.warning("button and LED are simulated: do not approve real requests with this board")
    }
    let broker = try configuration.mqtt.map { settings in
      BrokerSubscriber(
        settings: settings, credentials: try settings.credentials(), environment: environment, logger: logger)
    }
    var context = BackendContext(vault, configuration, board, in: environment)
    context.hintBroker = broker
    let backends = Backends(vault, context)
    let service = TokenService(
      panel: board.panel, backends: backends, broker: broker, recordsTexts: configuration.recordsTexts,
      logger: logger, events: events, onReady: onReady)
    let accounts = AccountService(
      service: service, backends: backends, veryLongHold: board.profile.timing.reportHold)
    let handler = ControlRequestHandler(service: service, backends: backends, board: board, accounts: accounts)
    let pushes = try configuration.push.listen.map {
      try PushListener(at: $0, in: environment) { service.wakePolls() }
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
    let group = ServiceGroup(
      configuration: ServiceGroupConfiguration(
        services: [
          .init(service: PanelService(panel: board.panel)),
          .init(service: HardwareWatch(panel: board.panel, environment: environment, logger: logger)),
          .init(service: control),
          .init(service: service),
        ] + ([pushes, watchdog] as [(any Service)?]).compactMap { $0.map { .init(service: $0) } },
        logger: Logger(label: "approval-token.lifecycle") { _ in SwiftLogNoOpLogHandler() }))
    MainThread.onStopSignal {
      onStop()
      Task { await group.triggerGracefulShutdown() }
    }
    defer { MainThread.onStopSignal(nil) }
    try await group.run()
    logger.info("stopped")
  }
}

/// Runs the panel as a service; when it ends, the LED is dark.
private struct PanelService: Service {
  let panel: FrontPanel

  func run() async throws { await cancelWhenGracefulShutdown { await panel.run() } }
}
