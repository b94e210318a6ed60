// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import Foundation
import Glibc
import Synchronization

/// An approval token as a process, with the simulated board.
package final class TestToken: Sendable {
  package let state: String
  private let board: String
  private let launcher: [String]
  private let config: String?
  private let process = Mutex<ChildProcess?>(nil)
  /// The socket of its network process; nil if it has none.
  private let relay: String?
  private let networkProcess = Mutex<ChildProcess?>(nil)

  /// Whether tokens that say nothing else have two processes: `TOKEN_PROCESSES=2`.
  package static let areSplit = ProcessInfo.processInfo.environment["TOKEN_PROCESSES"] == "2"

  /// A command that runs the programs of all tokens, in words: `TOKEN_LAUNCHER`.
  private static let commonLauncher =
    ProcessInfo.processInfo.environment["TOKEN_LAUNCHER"]?.split(separator: " ").map(String.init) ?? []

  /// - Parameters:
  ///   - board: the name of a profile, or a profile file.
  ///   - launcher: a command that runs the token's program, for example under another clock.
  ///   - config: a configuration file.
  ///   - isSplit: whether the service is two processes, `device` and `network`.
  package init(
    state: String, board: String, launcher: [String] = [], config: String? = nil, isSplit: Bool = areSplit
  ) {
    relay = isSplit ? state + ".relay" : nil
    self.state = state
    self.board = board
    self.launcher = Self.commonLauncher + launcher
    self.config = config
  }

  /// Runs one command until it ends.
  package func command(_ words: String..., input: String = "") async throws -> Outcome {
    try await launch(words, input: input).outcome()
  }

  package func enroll(_ uri: String, name: String? = nil) async throws -> Outcome {
    let naming = name.map { ["--name", $0] } ?? []
    return try await launch(["enroll", uri, "--json"] + naming).outcome()
  }

  /// Starts one command, which may need input at the panel.
  package func begin(_ words: String...) throws -> ChildProcess { try launch(words) }
  package func begin(_ words: [String]) throws -> ChildProcess { try launch(words) }

  func launch(
    _ words: [String], of program: String = Program.token, input: String = ""
  ) throws -> ChildProcess {
    var (words, input) = (words, input)
    // Rejected as an argument: the URI contains a permanent secret.
    if words.first == "enroll", words.count > 1, words[1].contains("auth://") {
      (input, words[1]) = (words[1] + "\n", "-")
    }
    let line = launcher + [program] + words + ["--state", state]
    return try ChildProcess(line[0], Array(line.dropFirst()), input: input)
  }

  /// Sends one call to the running service, which responds line by line.
  func call(_ request: ControlCall.Request) throws -> ControlCall {
    try ControlCall(request, at: state + "/control.sock")
  }

  /// Connections that follow the panel, as displays do. Fewer if the service does not accept all.
  package func watches(_ count: Int) -> [ControlCall] {
    (0..<count).compactMap { _ in try? call(.init(request: "watch")) }
  }

  // MARK: The process

  /// Starts the service and waits until it is ready.
  package func start() async throws {
    if networkProcess.withLock({ $0?.isRunning != true }) { try await startNetwork() }
    try await startDevice()
  }

  /// Starts the process that has the panel and the keys: the only one, unless the service is split.
  /// - Parameter path: the socket of another program in place of the network process.
  package func startDevice(at path: String? = nil) async throws {
    let command = (path ?? relay).map { ["device", "--relay", $0] } ?? ["serve"]
    let options = ["--board", board] + (config.map { ["--config", $0] } ?? [])
    let child = try launch(command + options, of: Program.service)
    process.withLock { $0 = child }
    try await child.output.line(with: "ready")
  }

  /// Starts the network process of a split service.
  package func startNetwork() async throws {
    guard let relay else { return }
    let line = launcher + [Program.network, "--relay", relay]
    let child = try ChildProcess(line[0], Array(line.dropFirst()))
    networkProcess.withLock { $0 = child }
    try await child.output.line(with: "ready")
  }

  /// The socket of the network process of a split service.
  package var relayPath: String { relay ?? "" }

  /// The network process of a split service.
  package var network: ChildProcess {
    get throws {
      guard let child = networkProcess.withLock({ $0 }) else {
        throw OutputTimeoutError(description: "a running network process")
      }
      return child
    }
  }

  package func startConnected() async throws {
    try await start()
    try await log.line(with: "] connected to")
  }

  package var running: ChildProcess {
    get throws {
      guard let child = process.withLock({ $0 }) else { throw OutputTimeoutError(description: "a running token") }
      return child
    }
  }

  /// The log of the running process.
  package var log: Transcript {
    get throws { try running.errors }
  }

  package func kill9() async throws { try await running.kill9() }

  package func stop() async throws {
    try running.send(SIGTERM)
    try await running.exit()
  }

  package func end() {
    process.withLock { $0?.send(SIGKILL) }
    networkProcess.withLock { $0?.send(SIGKILL) }
  }

  // MARK: State and log

  package struct LED: Decodable, Equatable {
    package let meaning: String
    /// The number of entries that were submitted before.
    let entries: Int
  }

  func look() async throws -> LED { try await call(.init(request: "led")).answer() }

  package func led() async throws -> String { try await look().meaning }

  /// One line for the present state of the LED and one for each change.
  package func watchLED() throws -> ControlCall { try call(.init(request: "follow-led")) }

  /// For a state that lasts: a shorter one may end between two looks.
  package func shows(_ meaning: String) async throws {
    _ = try await eventually("\"\(meaning)\" on the LED") { try await led() == meaning ? true : nil }
  }

  /// Waits until the LED shows `meaning` and the panel accepts presses and keys.
  package func asks(_ meaning: String) async throws {
    try await shows(meaning)
    _ = try await eventually("a press or key counts") { try await pressCounts() ? true : nil }
  }

  /// Performs an action after which the LED must show `meaning`, even if only for a second.
  package func shows(_ meaning: String, to act: () async throws -> Void) async throws {
    let eyes = try watchLED()
    try await eyes.output.line(with: "meaning")
    let mark = eyes.output.mark
    try await act()
    try await eyes.output.line(with: "\"\(meaning)\"", from: mark)
  }

  package struct Account: Decodable, Sendable, Equatable {
    package let account: String
    package let stage: String

    package init(account: String, stage: String) { (self.account, self.stage) = (account, stage) }
  }

  package func accounts() async throws -> [Account] { try await command("accounts", "--json").succeeded().decoded() }

  package struct Status: Decodable, Sendable {
    package struct Server: Decodable, Sendable { package let connection: String }

    package struct PIN: Decodable, Sendable, Equatable {
      package let account: String
      package let previousFailureCount: Int
      package let remainingFailureCount: Int

      package init(account: String, previousFailureCount: Int, remainingFailureCount: Int) {
        self.account = account
        self.previousFailureCount = previousFailureCount
        self.remainingFailureCount = remainingFailureCount
      }
    }

    package let running: Bool
    package let servers: [Server]
    package let accounts: Int
    package let mustEnroll: Int
    package let pending: Int?
    package let pins: [PIN]?
    package let loggedIn: String?

    package func pin(of account: String = "alice") -> PIN? { pins?.first { $0.account == account } }
  }

  package var hasState: Bool { access(state + "/vault.sqlite3", F_OK) == 0 }

  /// Asks the running service; where none runs, the command, which then reads the vault.
  package func status() async throws -> Status {
    if let call = try? call(.init(request: "status")) { return try await call.answer() }
    let outcome = try await command("status", "--json")
    // It may have started meanwhile.
    guard [.code(0), .code(69)].contains(outcome.exit) else {
      throw OutputTimeoutError(description: "exit code 69 without a service: \(outcome.exit)")
    }
    return try outcome.decoded()
  }

  /// The transactions of answers that no server has confirmed.
  package func unconfirmed() async throws -> [String] {
    struct Unconfirmed: Decodable { let transaction: String }
    struct Answers: Decodable { let unconfirmed: [Unconfirmed] }
    return try await call(.init(request: "status")).answer(Answers.self).unconfirmed.map(\.transaction)
  }

  package struct Pending: Decodable, Sendable {
    package let transaction: String
    package let pressCounts: Bool
    package let stale: Bool
  }

  package func pending() async throws -> [String] { try await pendingRequests().map(\.transaction) }

  private struct List: Decodable { let requests: [Pending] }

  /// The list of the command `pending`, newest first. Works also if a token server is not reachable.
  package func pendingRequests() async throws -> [Pending] {
    try await call(.init(request: "pending")).answer(List.self).requests
  }

  private struct Panel: Decodable {
    struct Readiness: Decodable { let pressCounts: Bool }
    let panel: Readiness
  }

  /// Whether the panel accepts a press or a key now.
  func pressCounts() async throws -> Bool {
    try await call(.init(request: "status")).answer(Panel.self).panel.pressCounts
  }
}
