// SPDX-License-Identifier: Apache-2.0
import ArgumentParser
import Boards
import FrontPanel
import Glibc
import Logging
import MobileAuth
import Secrets
import ServerBackends
import ServiceLifecycle
import UnixSignals
import Vault

struct Serve: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Run the token: receive requests, show them on the LED, send the answers.",
    discussion:
      "Prints \"ready\" on standard output when it accepts commands, and one line per event on standard error.")

  @Option(help: "Configuration file (TOML).", completion: .file(extensions: ["toml"]))
  var config: String?

  @OptionGroup var state: StateOption

  @Option(help: "Board: a name from `approval-token board list`, or a profile file. Default: simulated.")
  var board: String?

  func run() async throws {
    try await reporting {
      // Must run before the first secret is in memory.
      forbidMemoryDumps()
      overwriteFreedMemory()
      let configuration = try config.map(Configuration.read) ?? Configuration()
      var state = state
      state.chosen = state.chosen ?? configuration.state
      let profile = try BoardCatalog.profile(board ?? configuration.board ?? "simulated")
      let vault = try state.openVault(creating: true)
      try lockState(state.directory)
      try await serve(vault, profile, state, configuration)
    }
  }

  private func serve(
    _ vault: Vault, _ profile: BoardProfile, _ state: StateOption, _ configuration: Configuration
  ) async throws {
    var logger = Logger(label: "approval-token") { PlainLog($0) }
    logger.logLevel = .info
    let clock = SystemClock()
    let board = try RunningBoard(profile, clock: clock)
    if profile.kind == .simulated {
      logger.warning("button and LED are simulated: do not approve real requests with this board")
    }
    let broker = try configuration.mqtt.map { settings in
      BrokerSubscriber(settings: settings, credentials: try settings.credentials(), logger: logger)
    }
    let (events, reporting) = AsyncStream.makeStream(of: TokenEvent.self, bufferingPolicy: .bufferingNewest(256))
    var context = BackendContext(vault, configuration, board)
    context.hintBroker = broker
    context.report = { reporting.yield($0) }
    let backends = Backends(vault, context)
    let service = TokenService(
      panel: board.panel, backends: backends, broker: broker, clock: clock, logger: logger, events: events
    ) {
      print("ready")
      fflush(nil)
    }
    let accounts = AccountService(
      service: service, backends: backends, veryLongHold: board.profile.timing.reportHold)
    let handler = ControlRequestHandler(service: service, backends: backends, board: board, accounts: accounts)
    let pushes = try configuration.push.listen.map {
      try PushListener(at: $0, clock: clock) { service.wakePolls() }
    }
    let group = ServiceGroup(
      configuration: ServiceGroupConfiguration(
        services: [
          .init(service: PanelService(panel: board.panel)),
          .init(service: HardwareWatch(panel: board.panel, clock: clock, logger: logger)),
          .init(service: ControlServer(path: state.controlSocket) { try await handler.answer($0, $1) }),
          .init(service: service),
        ] + [pushes].compactMap { $0.map { .init(service: $0) } },
        gracefulShutdownSignals: [.sigterm, .sigint],
        logger: Logger(label: "approval-token.lifecycle") { _ in SwiftLogNoOpLogHandler() }))
    do { try await group.run() } catch let failure as UnixSocket.SocketError {
      throw CommandError(.unavailable, "\(failure)")
    }
    logger.info("stopped")
  }
}

/// Runs the panel as a service; when it ends, the LED is dark.
private struct PanelService: Service {
  let panel: FrontPanel

  func run() async throws { await cancelWhenGracefulShutdown { await panel.run() } }
}

/// One service per state directory: two would race for every press. The lock ends with the process.
func lockState(_ directory: String) throws(CommandError) {
  let descriptor = open(directory + "/serve.lock", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0o600)
  guard descriptor >= 0 else {
    throw CommandError(
      .unavailable,
      "\(directory)/serve.lock cannot be written: \(String(cString: strerror(errno))); see `approval-token doctor`")
  }
  guard flock(descriptor, LOCK_EX | LOCK_NB) == 0 else {
    let number = errno
    close(descriptor)
    throw number == EWOULDBLOCK
      ? CommandError(.unavailable, "another `approval-token serve` uses \(directory)")
      : CommandError(.unavailable, "\(directory)/serve.lock cannot be locked: \(String(cString: strerror(number)))")
  }
}
