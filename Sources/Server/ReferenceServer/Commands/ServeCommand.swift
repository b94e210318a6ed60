// SPDX-License-Identifier: Apache-2.0
import ArgumentParser
import Foundation
import Glibc
import Logging
import Secrets
import TokenServerCore

struct ServeCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "serve", abstract: "Run the server until SIGTERM or SIGINT.",
    discussion: """
      Prints one line, "listening on https://HOST:PORT", on standard output once it accepts connections. Everything \
      else goes to standard error.
      """)

  @Option(name: .shortAndLong, help: "The server's directory.")
  var directory = "token-server.d"

  @Option(help: "The port, instead of the configured one; 0 chooses a free port.")
  var port: Int?

  @Option(help: "The log level on standard error.")
  var logLevel = Verbosity.info

  enum Verbosity: String, CaseIterable, ExpressibleByArgument {
    case debug, info, notice, warning, error

    var level: Logger.Level { Logger.Level(rawValue: rawValue) ?? .info }
  }

  func validate() throws {
    if let port, !(0...65535).contains(port) { throw ValidationError("--port must be 0 to 65535") }
  }

  func run() async throws {
    forbidMemoryDumps()
    let level = logLevel.level
    LoggingSystem.bootstrap { label in
      var handler = StreamLogHandler.standardError(label: label)
      // Informational messages of libraries are not useful to an operator.
      handler.logLevel = label == "token-server" || level < .info ? level : max(level, .notice)
      return SanitizedLog(handler)
    }
    let directory = ServerDirectory(path: directory)
    var configuration = try directory.configuration()
    configuration.port = port ?? configuration.port
    let lock = try directory.lockForServing()
    defer { close(lock) }
    do {
      try await Server(directory: directory, configuration: configuration).run { issuer in
        print("listening on \(issuer)")
        fflush(nil)
      }
    } catch { throw CommandError("\(error)") }
  }
}
