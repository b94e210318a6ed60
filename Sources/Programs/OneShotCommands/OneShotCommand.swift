// SPDX-License-Identifier: Apache-2.0
package import ApprovalTokenCommands
import ArgumentParser
import Secrets
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
      var command = try parse(Array(CommandLine.arguments.dropFirst()))
      if let command = command as? any OneShotCommand {
        // Before the first secret is in memory.
        protectMemory()
        return try await command.perform()
      }
      try command.run()
    } catch { ApprovalTokenCommand.exit(withError: error) }
  }

  private static func parse(_ arguments: [String]) throws -> any ParsableCommand {
    try KindsOfServers.$rules.withValue(Rules()) {
      try service(arguments) ?? ApprovalTokenCommand.parseAsRoot(arguments)
    }
  }

  /// The command that starts a service, without ArgumentParser, which would take a quarter of each start, and memory
  /// that stays.
  /// - Returns: nil for another command, and for what is not an option with its value each: ArgumentParser knows more
  ///   ways to write them, and explains errors.
  package static func service(_ arguments: [String]) -> (any OneShotCommand)? {
    guard let name = arguments.first, ["serve", "device"].contains(name) else { return nil }
    var values: [String: String] = [:]
    var words = arguments.dropFirst()
    while let option = words.popFirst() {
      guard let value = words.popFirst(), !value.hasPrefix("-"), values.updateValue(value, forKey: option) == nil
      else { return nil }
    }
    let relay = name == "device" ? values.removeValue(forKey: "--relay") : nil
    var options = ServiceOptions()
    options.config = values.removeValue(forKey: "--config")
    options.board = values.removeValue(forKey: "--board")
    var state = StateOption()
    state.chosen = values.removeValue(forKey: "--state")
    options.state = state
    guard values.isEmpty else { return nil }
    guard name == "device" else { return Serve(options) }
    return Device(options, relay: relay)
  }

  /// The rules of all kinds.
  package struct Rules: ArgumentRules {
    package init() {}

    package func carriesLastingSecret(_ uri: String) -> Bool { Backends.carriesLastingSecret(uri) }
    package func rule(brokenByMailbox text: String) -> String? { Backends.rule(brokenByMailbox: text) }
  }
}
