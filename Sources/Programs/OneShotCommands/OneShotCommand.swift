// SPDX-License-Identifier: Apache-2.0
package import ApprovalTokenCommands
import ArgumentParser
import TokenDaemon

/// A command that the daemon's program performs itself.
package protocol OneShotCommand: DaemonCommand {
  func perform() async throws
}

/// The command line of the daemon's program, which is that of `approval-token`.
package enum DaemonCommandLine {
  /// Parses the arguments of this process and performs the command.
  package static func run() async {
    do {
      var command = try parse()
      if let command = command as? any OneShotCommand { return try await command.perform() }
      try command.run()
    } catch { ApprovalTokenCommand.exit(withError: error) }
  }

  private static func parse() throws -> any ParsableCommand {
    try KindsOfServers.$rules.withValue(Rules()) { try service() ?? ApprovalTokenCommand.parseAsRoot() }
  }

  /// The command that starts a service, parsed without the other commands, which would take a part of each start.
  /// - Returns: nil for another command, and for options that only the whole command line explains.
  private static func service() -> (any ParsableCommand)? {
    let arguments = CommandLine.arguments.dropFirst()
    let services: [any DaemonCommand.Type] = [Serve.self, Device.self]
    let named = services.first { $0.configuration.commandName == arguments.first }
    return try? named?.parse(Array(arguments.dropFirst()))
  }

  /// The rules of all kinds.
  package struct Rules: ArgumentRules {
    package init() {}

    package func carriesLastingSecret(_ uri: String) -> Bool { Backends.carriesLastingSecret(uri) }
    package func rule(brokenByMailbox text: String) -> String? { Backends.rule(brokenByMailbox: text) }
  }
}
