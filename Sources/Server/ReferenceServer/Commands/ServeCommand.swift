// SPDX-License-Identifier: Apache-2.0
import ArgumentParser
import CoreMetrics
import Foundation
import Glibc
import Logging
import NIOCore
import Secrets
import TokenServerCore
import TokenServerMetrics

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

  @Option(help: "The format of the log: text, or json with one object for each line.")
  var logFormat = LogFormat.text

  enum LogFormat: String, CaseIterable, ExpressibleByArgument { case text, json }

  enum Verbosity: String, CaseIterable, ExpressibleByArgument {
    case debug, info, notice, warning, error

    var level: Logger.Level { Logger.Level(rawValue: rawValue) ?? .info }
  }

  func validate() throws {
    if let port, !(0...65535).contains(port) { throw ValidationError("--port must be 0 to 65535") }
  }

  func run() async throws {
    forbidMemoryDumps()
    keepFreedMemory()
    // Without it, the C library looks for another time zone at each line of the log.
    setenv("TZ", ":/etc/localtime", 0)
    let level = logLevel.level
    LoggingSystem.bootstrap { [logFormat] label in
      var handler: any LogHandler =
        switch logFormat {
        case .text: StreamLogHandler.standardError(label: label)
        case .json: JSONLog(label: label)
        }
      // Informational messages of libraries are not useful to an operator.
      handler.logLevel = label == "token-server" || level < .info ? level : max(level, .notice)
      return SanitizedLog(handler)
    }
    let directory = ServerDirectory(path: directory)
    var configuration = try directory.configuration()
    configuration.port = port ?? configuration.port
    for (setting, name) in [("certificate", configuration.certificateFile), ("key", configuration.privateKeyFile)] {
      let file = directory.file(name)
      guard FileManager.default.isReadableFile(atPath: file) else {
        throw CommandError("cannot read \(file), which is tls.\(setting) in \(directory.configurationFile)")
      }
    }
    let registry = PrometheusRegistry()
    if let operations = configuration.operations {
      guard (try? SocketAddress.makeAddressResolvingHost(operations.listen, port: operations.port)) != nil else {
        throw CommandError("\"operations.listen\" is not an address of this machine: \(operations.listen)")
      }
      MetricsSystem.bootstrap(registry)
      ServerMetrics.begin(isPooled: configuration.database != nil)
    }
    let lock = try directory.lockForServing()
    defer { close(lock) }
    do {
      try await Server(directory: directory, configuration: configuration, registry: registry).run { issuer in
        print("listening on \(issuer)")
        fflush(nil)
      }
    } catch let error as IOError {
      throw CommandError(configuration.listenFailure(error.errnoCode))
    } catch let error as SocketAddressError.UnknownHost {
      throw CommandError("\"listen\" is not an address of this machine: \(error.host)")
    } catch { throw CommandError("\(error)") }
  }
}

extension ServerConfiguration {
  /// That the server cannot listen at its addresses, and why.
  /// - Parameter number: `errno`.
  func listenFailure(_ number: Int32) -> String {
    let addresses =
      ["\(listen):\(port)"] + (operations.map { ["\($0.listen):\($0.port) (operations)"] } ?? [])
    let text = "cannot listen on \(addresses.joined(separator: " or ")): \(String(cString: strerror(number)))"
    let hasPrivilegedPort = [port, operations?.port ?? 0].contains { (1..<1024).contains($0) }
    guard number == EACCES, hasPrivilegedPort else { return text }
    return text
      + "; a port below 1024 needs the capability CAP_NET_BIND_SERVICE: with the Debian package, see README.Debian"
  }
}
