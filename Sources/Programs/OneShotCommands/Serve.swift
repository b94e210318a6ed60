// SPDX-License-Identifier: Apache-2.0
import ApprovalTokenCommands
import ArgumentParser
import Boards
import Cryptography
import Glibc
import NetworkDaemon
import RelayProtocol
import Secrets
import TokenDaemon
import Vault

extension Serve: OneShotCommand {
  package func perform() async throws {
    try await reporting { try await serve(options, network: .ofThisProcess) }
  }
}

extension Device: OneShotCommand {
  package func perform() async throws {
    omitErrorTexts()
    try await reporting { try await serve(options, network: .through(Relay(path: relay))) }
  }
}

private func serve(_ options: ServiceOptions, network: NetworkAccess) async throws {
  // A reader of the log that ends must not end the service.
  signal(SIGPIPE, SIG_IGN)
  limitLockedMemoryOfLibraries()
  let configuration = try options.config.map(Configuration.read) ?? Configuration()
  var state = options.state
  state.chosen = state.chosen ?? configuration.state
  try state.requireChoice("run `systemctl start approval-token`")
  let profile = try BoardCatalog.profile(options.board ?? configuration.board ?? "simulated")
  // Before the vault is opened: that would change the log, and the format, under a service that already runs.
  try state.prepareDirectory()
  try lockState(state.directory)
  let reset = FactoryReset(directory: state.directory)
  if try reset.hasBegun { try reset.finish() }
  let vault = try state.openVault(creating: true, reservesLog: true)
  let daemon = Daemon(vault, on: profile, configuration, controlSocket: state.controlSocket, network: network)
  try await daemon.run(
    under: serviceManager, journalStream: environment("JOURNAL_STREAM"), onReady: serviceManager.reportReady,
    onStop: serviceManager.reportStop)
  guard try reset.hasBegun else { return }
  // The unit of the package removes a credential, too, before the next start.
  if environment("CREDENTIALS_DIRECTORY") == nil { try reset.finish() }
  throw ExitCode(exitCodeAfterReset)
}

/// The service manager then starts the service again.
private let exitCodeAfterReset: Int32 = 85

private let serviceManager = ServiceManager(environment)
