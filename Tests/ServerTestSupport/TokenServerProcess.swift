// SPDX-License-Identifier: Apache-2.0
import BuiltPrograms
import Foundation
import FreePorts

/// The built `token-server` in a temporary directory, used through its public interfaces.
package final class TokenServerProcess: Sendable {
  package let directory: String
  package let url: String
  /// Trusts the server's certificate authority.
  package let curl: Curl
  private let executable: String
  private let program: RunningProgram
  /// Several servers, of which `program` is the first.
  package let group: ServerGroup?

  /// - Parameters:
  ///   - configuration: the complete `config.toml`; nil for the file of `init`.
  ///   - directory: the directory of a stopped server, to start it again; nil for a copy of a newly initialized one.
  ///   - port: the port; 0 selects a free port.
  ///   - servers: more than one are processes on one PostgreSQL database, behind HAProxy.
  ///   - executable: the path of another version of `token-server`, for several servers; nil for the built one.
  package init(
    configuration: String? = nil, directory: String? = nil, port: Int = 0,
    servers: Int = TestDeployment.serverCount, executable: String? = nil
  ) throws {
    self.executable = try executable ?? BuiltProgram.path("token-server")
    self.directory =
      try directory ?? executable.map(ServerDirectories.onPostgreSQL)
      ?? ServerDirectories.new(onPostgreSQL: TestDeployment.usesPostgreSQL || servers > 1)
    if let configuration {
      // The callbacks of tests go to this machine.
      let database = TestDeployment.database(of: self.directory).map { "\n[database]\nurl = \"\($0)\"\n" } ?? ""
      try (#"callback_private_addresses = ["127.0.0.0/8"]"# + "\n" + configuration + database)
        .write(toFile: self.directory + "/config.toml", atomically: true, encoding: .utf8)
    }
    // Of the kernel's choice, a client could get the port while the server is stopped.
    let port = port == 0 ? try FreePort.reserve() : port
    if servers > 1 {
      let group = try ServerGroup(of: servers, in: self.directory, port: port, self.executable)
      (self.group, program, url) = (group, group.first, group.url)
    } else {
      group = nil
      (program, url) = try ServerGroup.serve(self.directory, port: port, self.executable)
    }
    curl = Curl(certificateAuthority: self.directory + "/ca.pem")
  }

  deinit {
    _ = group?.stop(killing: true)
    program.send(SIGKILL)
    if let database = TestDeployment.database(of: directory) { TestPostgreSQL.drop(database) }
    try? FileManager.default.removeItem(atPath: directory)
  }

  /// The server's process.
  package var processIdentifier: Int32 { program.processIdentifier }

  package var port: Int { Int(url.split(separator: ":").last ?? "") ?? 0 }

  /// The server's log.
  package var log: String { (try? String(contentsOfFile: directory + "/log", encoding: .utf8)) ?? "" }

  /// - Returns: the exit status.
  package func stop(killing: Bool = false) -> Int32 {
    if let group { return group.stop(killing: killing) }
    program.send(killing ? SIGKILL : SIGTERM)
    return program.waitForEnd()
  }

  /// Runs a command with `--json` while the server runs.
  @discardableResult
  package func admin(_ arguments: String...) throws -> [String: any Sendable] {
    let output = try run(executable, arguments + ["--directory", directory, "--json"])
    guard output.status == 0 else { throw Curl.CurlError(description: "\(arguments): \(output.errors)") }
    return try JSONSerialization.jsonObject(with: Data(output.bytes)) as? [String: any Sendable] ?? [:]
  }

  /// A new portal's credentials.
  package func addPortal(_ id: String = "portal", _ options: String...) throws -> (id: String, secret: String) {
    let output = try run(
      executable, ["api-client", "add", id, "--directory", directory, "--json"] + options)
    let made = try JSONSerialization.jsonObject(with: Data(output.bytes)) as? [String: String]
    guard let secret = made?["client_secret"] else { throw Curl.CurlError(description: output.errors) }
    return (id, secret)
  }

  /// A new code for a user; adds the user if necessary.
  package func activationCode(for user: String) throws -> String {
    // Alice is in every server of `ServerDirectories`; another user may have been added before.
    if user != "alice" { _ = try? admin("user", "add", user) }
    guard let code = try admin("activation-code", user)["code"] as? String else {
      throw Curl.CurlError(description: "no code")
    }
    return code
  }
}
