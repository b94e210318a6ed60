// SPDX-License-Identifier: Apache-2.0
import Foundation
import FreePorts
import Glibc
import ProgramHarness
import Synchronization

/// A reference token server as a process, with the user alice and an authorized portal.
final class TestServer: Sendable {
  let directory: String
  private let process = Mutex<ChildProcess?>(nil)
  /// Constant, because tokens store the server's address.
  let portNumber: Int
  private let logs = Mutex<[Transcript]>([])
  private let template: ServerTemplate

  /// - Parameters:
  ///   - proxy: a proxy in front of the server; the server uses the proxy's address as its issuer.
  ///   - types: `[[type]]` entries in addition to the template's `login` and `payment`, whose requests wait for 10 min.
  ///   - pin: the PIN settings of `[application]`; nil for users without a PIN.
  init(
    in folder: TemporaryDirectory, behind proxy: DisconnectingProxy? = nil, types: String = "", pin: String? = nil
  ) async throws {
    portNumber = try proxy?.findTarget() ?? FreePort.reserve()
    directory = folder.file("server")
    template = try await .made(withPIN: pin != nil)
    try template.write(to: directory)
    if let pin { try rewrite { $0.replacing("# max_pin_attempts = 3", with: pin) } }
    try rewrite { $0.replacing(/request_expires_in = (60|120)\n/, with: "request_expires_in = 600\n") }
    // The callbacks of tests go to this machine.
    let callbacks = "callback_private_addresses = [\"127.0.0.0/8\"]\n"
    // A test that answers "not me" continues to send requests to the same user.
    try rewrite { $0.replacing("# not_me_hold_seconds = 300", with: "not_me_hold_seconds = 0") }
    try rewrite { template in callbacks + (proxy.map { "issuer = \"\($0.issuer)\"\n" } ?? "") + template + types }
  }

  /// Changes the configuration, which the server reads at its next start.
  func rewrite(_ change: (String) -> String) throws {
    let file = directory + "/config.toml"
    try change(try String(contentsOfFile: file, encoding: .utf8)).write(
      toFile: file, atomically: true, encoding: .utf8)
  }

  /// Runs one admin command to its end.
  @discardableResult
  func command(_ words: String...) async throws -> Outcome {
    try await run(Program.server, words + ["--directory", directory, "--json"]).succeeded()
  }

  /// Executes SQL statements on the database, each in one transaction with the others. The server may run.
  func edit(_ statements: String...) async throws {
    let edit = """
      import sqlite3, sys; store = sqlite3.connect(sys.argv[1], timeout=30)
      for statement in sys.argv[2:]: store.execute(statement)
      store.commit()
      """
    try await run("python3", ["-c", edit, directory + "/token-server.db"] + statements).succeeded()
  }

  /// The number of rows of a table of the database. The server may run.
  func rowCount(of table: String) async throws -> Int {
    let query = """
      import sqlite3, sys; store = sqlite3.connect(sys.argv[1], timeout=30)
      print(store.execute("SELECT count(*) FROM " + sys.argv[2]).fetchone()[0])
      """
    return try await run("python3", ["-c", query, directory + "/token-server.db", table]).succeeded().decoded()
  }

  // MARK: The process

  func start() async throws {
    let child = try ChildProcess(Program.server, ["serve", "--directory", directory, "--port", "\(portNumber)"])
    process.withLock { $0 = child }
    logs.withLock { $0.append(child.errors) }
    try await child.output.line(with: "listening on https://")
  }

  /// `https://HOST:PORT` of the listener, regardless of the issuer.
  var address: String { "https://127.0.0.1:\(portNumber)" }

  /// The running process's log.
  var log: Transcript {
    get throws { try running.errors }
  }

  private var running: ChildProcess {
    get throws {
      guard let child = process.withLock({ $0 }) else { throw OutputTimeoutError(description: "a running server") }
      return child
    }
  }

  /// How often the server logged `part`, over all its restarts.
  func logged(_ part: String) -> Int { logs.withLock { $0 }.reduce(0) { $0 + $1.count(of: part) } }

  /// Sends SIGTERM and waits until the process has ended.
  func stop() async throws {
    try running.send(SIGTERM)
    try await running.exit()
  }

  func kill9() async throws { try await running.kill9() }

  func end() { process.withLock { $0?.send(SIGKILL) } }

  // MARK: Administration

  /// Does nothing for alice, who exists from the beginning.
  func addUser(_ user: String) async throws {
    if user != "alice" { try await command("user", "add", user) }
  }

  /// - Returns: an activation URI for `user`.
  func activation(for user: String) async throws -> String {
    struct Made: Decodable { let uri: String }
    return try await command("activation-code", user).decoded(Made.self).uri
  }

  var portal: Portal {
    Portal(base: { [self] in address }, authority: directory + "/ca.pem", credentials: template.credentials)
  }

  struct Device: Decodable {
    struct User: Decodable {
      let user: String
      let profileId: String
      let push: Bool
      /// `none`, `pending` or `active`.
      let pin: String
      /// Wrong PIN attempts since the last correct PIN; nil without a PIN.
      let pinFailures: Int?
      /// The registered ones other than the PIN; nil from an earlier server.
      let authenticators: [String]?
    }

    let deviceId: String
    let name: String
    let boardSerial: String?
    let users: [User]
  }

  func devices() async throws -> [Device] { try await command("device", "list").decoded() }

  /// A user's account on a token; on the first token if none is named.
  func account(of user: String = "alice", on device: String? = nil) async throws -> Device.User? {
    let devices = try await devices().filter { device == nil || $0.deviceId == device }
    return devices.flatMap(\.users).first { $0.user == user }
  }

  /// Wrong PIN attempts since the last correct PIN; nil without a PIN.
  func pinFailures(of user: String = "alice", on device: String? = nil) async throws -> Int? {
    try await account(of: user, on: device)?.pinFailures
  }

  struct Transaction: Decodable {
    let transactionId: String
    let state: String
    let reason: String?
    let denialReason: String?
  }

  func transaction(_ id: String) async throws -> Transaction {
    let all = try await command("transaction", "list").decoded([Transaction].self)
    guard let found = all.first(where: { $0.transactionId == id }) else {
      throw OutputTimeoutError(description: "transaction \(id) in the server's list")
    }
    return found
  }
}
