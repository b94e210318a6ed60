import Foundation
import Glibc
import Synchronization

/// An approval token as a process, with the simulated board.
final class TestToken: Sendable {
  let state: String
  private let board: String
  private let launcher: [String]
  private let config: String?
  private let process = Mutex<ChildProcess?>(nil)

  /// - Parameters:
  ///   - board: a name or a profile file.
  ///   - launcher: a command that runs the token's program, for example under another clock.
  ///   - config: a configuration file.
  init(state: String, board: String, launcher: [String] = [], config: String? = nil) {
    self.state = state
    self.board = board
    self.launcher = launcher
    self.config = config
  }

  /// Runs one command to its end.
  func command(_ words: String..., input: String = "") async throws -> Outcome {
    try await launch(words, input: input).outcome()
  }

  func enrol(_ uri: String, name: String? = nil) async throws -> Outcome {
    let naming = name.map { ["--name", $0] } ?? []
    return try await launch(["enroll", uri, "--json"] + naming).outcome()
  }

  /// Starts one command, which may have to be finished at the panel.
  func begin(_ words: String...) throws -> ChildProcess { try launch(words) }

  private func launch(_ words: [String], input: String = "") throws -> ChildProcess {
    let line = launcher + [Program.token] + words + ["--state", state]
    return try ChildProcess(line[0], Array(line.dropFirst()), input: input)
  }

  // MARK: The process

  /// Starts `serve` and waits until it says that it is ready.
  func start() async throws {
    let child = try launch(["serve", "--board", board] + (config.map { ["--config", $0] } ?? []))
    process.withLock { $0 = child }
    try await child.output.line(with: "ready")
  }

  func startConnected() async throws {
    try await start()
    try await log.line(with: " connected to")
  }

  var running: ChildProcess {
    get throws {
      guard let child = process.withLock({ $0 }) else { throw NotSeen(description: "a running token") }
      return child
    }
  }

  /// What the running process has logged.
  var log: Transcript {
    get throws { try running.errors }
  }

  func kill9() async throws { try await running.kill9() }

  func stop() async throws {
    try running.send(SIGTERM)
    try await running.exit(within: .seconds(5))
  }

  func end() { process.withLock { $0?.send(SIGKILL) } }

  // MARK: What it says

  struct LED: Decodable, Equatable { let meaning: String }

  func led() async throws -> String {
    try await command("simulate", "led", "--json").succeeded().decoded(LED.self).meaning
  }

  /// Polls, because any LED state may be over before a follower has been told.
  func shows(_ meaning: String) async throws {
    _ = try await eventually("\"\(meaning)\" on the LED") { try await led() == meaning ? true : nil }
  }

  struct AuditLine: Decodable, Sendable {
    let sequence: Int
    let kind: String
    let account: String?
    let transaction: String?
    let detail: String
  }

  /// The audit chain; of one transaction if that is given.
  func audit(of transaction: String? = nil) async throws -> [AuditLine] {
    let lines = try await command("log", "--lines", "10000", "--json").succeeded().decoded([AuditLine].self)
    return lines.filter { transaction == nil || $0.transaction == transaction }
  }

  /// How the token says that the transaction ended, last.
  func ending(of transaction: String) async throws -> String? {
    try await audit(of: transaction).last { $0.kind == "settled" }?.detail
  }

  struct Account: Decodable, Sendable, Equatable {
    let account: String
    let stage: String
  }

  func accounts() async throws -> [Account] { try await command("accounts", "--json").succeeded().decoded() }

  struct Status: Decodable, Sendable {
    struct Server: Decodable, Sendable { let connection: String }

    struct PIN: Decodable, Sendable, Equatable {
      let account: String
      let previousFailureCount: Int
      let remainingFailureCount: Int
    }

    let running: Bool
    let servers: [Server]
    let accounts: Int
    let mustEnrol: Int
    let pending: Int?
    let pins: [PIN]?
    let loggedIn: String?

    func pin(of account: String = "alice") -> PIN? { pins?.first { $0.account == account } }
  }

  func status() async throws -> Status { try await command("status", "--json").succeeded().decoded() }

  struct Pending: Decodable, Sendable { let transaction: String }

  func pending() async throws -> [String] {
    try await command("pending", "--json").succeeded().decoded([Pending].self).map(\.transaction)
  }

  func provesItsLog() async throws -> Bool {
    struct Verification: Decodable { let intact: Bool }
    return try await command("log", "--verify", "--json").decoded(Verification.self).intact
  }
}
