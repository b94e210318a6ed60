// SPDX-License-Identifier: Apache-2.0
import Foundation
import ProgramHarness
import Synchronization

/// A reference token server of any version as a process. Uses only commands and settings that every version has.
final class VersionedServer: Sendable {
  let directory: String
  private let program: String
  private let launcher: [String]
  private let process = Mutex<ChildProcess?>(nil)
  private let address = Mutex("")

  /// - Parameters:
  ///   - program: the path of `token-server`.
  ///   - launcher: a command that runs the program.
  init(program: String, directory: String, launcher: [String] = []) {
    self.program = program
    self.directory = directory
    self.launcher = launcher
  }

  /// Initializes a server with the user alice and a portal.
  /// - Parameter withPIN: whether users choose a PIN. Versions with a PIN by default have an option to turn it off.
  /// - Returns: the portal's credentials in the format of curl's `--user`.
  func initialize(withPIN: Bool, _ options: [String] = []) async throws -> String {
    struct Added: Decodable { let clientSecret: String }
    let line = launcher + [program, "init", "--help"]
    let help = try await run(line[0], Array(line.dropFirst())).succeeded().output
    let withoutPIN = help.contains("--no-pin") ? ["--no-pin"] : []
    _ = try await command(["init"] + (withPIN ? ["--pin"] : withoutPIN) + options)
    _ = try await command(["user", "add", "alice"])
    return "portal:\(try await command(["api-client", "add", "portal"]).decoded(Added.self).clientSecret)"
  }

  @discardableResult
  func command(_ words: [String]) async throws -> Outcome {
    let line = launcher + [program] + words + ["--directory", directory, "--json"]
    return try await run(line[0], Array(line.dropFirst())).succeeded()
  }

  func activation(for user: String = "alice") async throws -> String {
    struct Made: Decodable { let uri: String }
    return try await command(["activation-code", user]).decoded(Made.self).uri
  }

  /// - Parameter port: 0 for a free one; nil for the port in the configuration.
  func start(port: Int? = 0) async throws {
    let line =
      launcher + [program, "serve", "--directory", directory] + (port.map { ["--port", "\($0)"] } ?? [])
    let child = try ChildProcess(line[0], Array(line.dropFirst()))
    process.withLock { $0 = child }
    let listening = try await child.output.line(with: "listening on https://")
    address.withLock { $0 = String(listening.dropFirst("listening on ".count)) }
  }

  /// Ends the process in an orderly way.
  func stop() async throws {
    guard let child = process.withLock({ $0 }) else { return }
    child.send(SIGTERM)
    try await child.exit()
  }

  func end() { process.withLock { $0?.send(SIGKILL) } }

  var log: String { process.withLock { $0 }.map { $0.errors.lines.joined(separator: "\n") } ?? "" }

  func portal(_ credentials: String) -> Portal {
    Portal(
      base: { [self] in address.withLock { $0 } }, authority: directory + "/ca.pem", credentials: credentials,
      launcher: launcher)
  }

  func transactions() async throws -> [TestServer.Transaction] {
    try await command(["transaction", "list"]).decoded()
  }

  func devices() async throws -> [TestServer.Device] { try await command(["device", "list"]).decoded() }
}
