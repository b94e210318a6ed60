// SPDX-License-Identifier: Apache-2.0
import BuiltPrograms
import Foundation

/// The built `token-server` in a temporary directory, used through its public interfaces.
package final class TokenServerProcess: Sendable {
  package let directory: String
  package let url: String
  /// Trusts the server's certificate authority.
  package let curl: Curl
  private let program: RunningProgram
  /// The other servers on the same database, and the balancer before all of them.
  private let others: [(program: RunningProgram, directory: String)]
  private let balancer: TestBalancer?

  /// - Parameters:
  ///   - configuration: the complete `config.toml`; nil for the file of `init`.
  ///   - directory: the directory of a stopped server, to start it again; nil for a copy of a newly initialized one.
  ///   - port: the port; 0 selects a free port.
  package init(configuration: String? = nil, directory: String? = nil, port: Int = 0) throws {
    self.directory = try directory ?? ServerDirectories.new()
    if let configuration {
      // The callbacks of tests go to this machine.
      let database = TestDeployment.database(of: self.directory).map { "\n[database]\nurl = \"\($0)\"\n" } ?? ""
      try (#"callback_private_addresses = ["127.0.0.0/8"]"# + "\n" + configuration + database)
        .write(toFile: self.directory + "/config.toml", atomically: true, encoding: .utf8)
    }
    guard TestDeployment.serverCount == 1 else {
      (url, others, balancer, program) = try Self.several(
        TestDeployment.serverCount, in: self.directory, port: port == 0 ? freePort() : port)
      curl = Curl(certificateAuthority: self.directory + "/ca.pem")
      return
    }
    (others, balancer) = ([], nil)
    (program, url) = try Self.serve(self.directory, port: port)
    curl = Curl(certificateAuthority: self.directory + "/ca.pem")
  }

  /// - Returns: the process, and the issuer that it prints.
  private static func serve(_ directory: String, port: Int) throws -> (RunningProgram, String) {
    let log = directory + "/log"
    let program = try RunningProgram(
      BuiltProgram.path("token-server"), ["serve", "--directory", directory, "--port", String(port)], errors: log)
    guard let line = program.nextLine(), line.hasPrefix("listening on ") else {
      let complaint = (try? String(contentsOfFile: log, encoding: .utf8)) ?? ""
      throw Curl.CurlError(description: "serve did not start: \(complaint)")
    }
    return (program, String(line.dropFirst("listening on ".count)))
  }

  private static func several(_ count: Int, in directory: String, port: Int) throws -> (
    url: String, others: [(program: RunningProgram, directory: String)], balancer: TestBalancer, first: RunningProgram
  ) {
    let url = "https://127.0.0.1:\(port)"
    let file = directory + "/config.toml"
    let lines = try String(contentsOfFile: file, encoding: .utf8).split(separator: "\n", omittingEmptySubsequences: false)
    try (["issuer = \"\(url)\""] + lines.filter { !$0.hasPrefix("issuer = ") }).joined(separator: "\n")
      .write(toFile: file, atomically: true, encoding: .utf8)
    let ports = try (0..<count).map { _ in try freePort() }
    let first = try serve(directory, port: ports[0]).0
    let others = try ports.dropFirst().map { port in
      let copy = try ServerDirectories.copy(of: directory, sharing: true)
      return (program: try serve(copy, port: port).0, directory: copy)
    }
    return (url, others, try TestBalancer(port: port, servers: ports), first)
  }

  deinit {
    program.send(SIGKILL)
    for other in others {
      other.program.send(SIGKILL)
      try? FileManager.default.removeItem(atPath: other.directory)
    }
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
    let programs = [program] + others.map(\.program)
    for program in programs { program.send(killing ? SIGKILL : SIGTERM) }
    balancer?.stop()
    return programs.map { $0.waitForEnd() }.max() ?? 0
  }

  /// Runs a command with `--json` while the server runs.
  @discardableResult
  package func admin(_ arguments: String...) throws -> [String: any Sendable] {
    let output = try run(
      BuiltProgram.path("token-server"), arguments + ["--directory", directory, "--json"])
    guard output.status == 0 else { throw Curl.CurlError(description: "\(arguments): \(output.errors)") }
    return try JSONSerialization.jsonObject(with: Data(output.bytes)) as? [String: any Sendable] ?? [:]
  }

  /// A new portal's credentials.
  package func addPortal(_ id: String = "portal", _ options: String...) throws -> (id: String, secret: String) {
    let output = try run(
      BuiltProgram.path("token-server"), ["api-client", "add", id, "--directory", directory, "--json"] + options)
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
