// SPDX-License-Identifier: Apache-2.0
package import ArgumentParser

package struct Device: DaemonCommand {
  package static let configuration = CommandConfiguration(
    commandName: "device", abstract: "Run the token's device process: keys, panel and storage, without the network.",
    discussion: """
      `serve` in two processes: this one needs `approval-token network`, which may start earlier or later, and end and \
      start again. Prints "ready" on standard output when it accepts commands, and one line per event on standard error.
      """)

  @Option(help: "Socket of the network process.")
  package var relay = defaultRelay

  @OptionGroup package var options: ServiceOptions

  private static let defaultRelay = "/run/approval-token-network/relay.sock"

  package init() {}

  /// - Parameter relay: nil for its default.
  package init(_ options: ServiceOptions, relay: String?) {
    self.options = options
    self.relay = relay ?? Self.defaultRelay
  }
}

package struct Network: ParsableCommand {
  package static let configuration = CommandConfiguration(
    commandName: "network", abstract: "Run the token's network process, without keys, devices and storage.",
    discussion: """
      Connects to servers for `approval-token device`, which says to which ones. Needs no configuration and no \
      directory. Prints "ready" on standard output when it accepts connections.
      """)

  @Option(help: "Socket for the device process. Default: the socket of the service manager (systemd.socket).")
  package var relay: String?

  package init() {}

  package func run() throws {
    try reporting { try OtherProgram.network.start(relay.map { ["--relay", $0] } ?? []) }
  }
}
