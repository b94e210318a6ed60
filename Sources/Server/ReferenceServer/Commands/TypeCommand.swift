// SPDX-License-Identifier: Apache-2.0
import ArgumentParser
import ReferenceProtocol
import TokenServerCore

struct TypeCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "type", abstract: "Show the mobile authentication types of config.toml.",
    subcommands: [List.self])

  struct List: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      commandName: "list", abstract: "List the types; this also checks the configuration.")

    @OptionGroup var options: CommonOptions

    private struct Entry: Encodable {
      var name: String
      var method: String
      var requestExpiresIn: Int

      enum CodingKeys: String, CodingKey {
        case name, method
        case requestExpiresIn = "request_expires_in"
      }
    }

    func run() async throws {
      let configuration = try options.serverDirectory.configuration()
      let types = configuration.types
      for warning in ScriptProcesses.warnings(about: configuration, in: options.serverDirectory) { complain(warning) }
      try options.print(
        types.map { Entry(name: $0.name, method: $0.method.rawValue, requestExpiresIn: $0.requestExpiresIn) },
        types.map { "\($0.name)  \($0.method.rawValue)  \($0.requestExpiresIn) s" }.joined(separator: "\n"))
    }
  }
}
