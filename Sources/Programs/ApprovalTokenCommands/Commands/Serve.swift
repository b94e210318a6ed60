// SPDX-License-Identifier: Apache-2.0
package import ArgumentParser

package struct Serve: DaemonCommand {
  package static let configuration = CommandConfiguration(
    commandName: "serve", abstract: "Run the token: receive requests, show them on the LED, send the answers.",
    discussion:
      "Prints \"ready\" on standard output when it accepts commands, and one line per event on standard error.")

  @OptionGroup package var options: ServiceOptions

  package init() {}

  package init(_ options: ServiceOptions) { self.options = options }
}

/// What a service is started with, in one process or in two.
package struct ServiceOptions: ParsableArguments {
  @Option(help: "Configuration file (TOML).", completion: .file(extensions: ["toml"]))
  package var config: String?

  @OptionGroup package var state: StateOption

  @Option(help: "Board: a name from `approval-token board list`, or a profile file. Default: simulated.")
  package var board: String?

  package init() {}
}
