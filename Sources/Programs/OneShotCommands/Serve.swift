// SPDX-License-Identifier: Apache-2.0
import ApprovalTokenCommands
import Boards
import Glibc
import Secrets
import TokenDaemon
import Vault

extension Serve: OneShotCommand {
  package func perform() async throws {
    try await reporting {
      // A reader of the log that ends must not end the service.
      signal(SIGPIPE, SIG_IGN)
      // Must run before the first secret is in memory.
      forbidMemoryDumps()
      overwriteFreedMemory()
      let configuration = try config.map(Configuration.read) ?? Configuration()
      var state = state
      state.chosen = state.chosen ?? configuration.state
      let profile = try BoardCatalog.profile(board ?? configuration.board ?? "simulated")
      let vault = try state.openVault(creating: true)
      try lockState(state.directory)
      let manager = ServiceManager(
        path: environment("NOTIFY_SOCKET"), watchdogMicroseconds: environment("WATCHDOG_USEC"),
        watchdogProcess: environment("WATCHDOG_PID"))
      let daemon = Daemon(vault, on: profile, configuration, controlSocket: state.controlSocket)
      try await daemon.run(under: manager) {
        print("ready")
        fflush(nil)
        manager.notify("READY=1")
      } onStop: {
        manager.notify("STOPPING=1")
      }
    }
  }
}
