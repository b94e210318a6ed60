// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import Foundation
import Synchronization

/// An approval token of any version as a process, with a simulated board. Uses only commands and files that every
/// version has, in contrast to `TestToken`, which uses the control socket of the present version.
package final class VersionedToken: Sendable {
  package let state: String
  private let program: String
  private let board: String
  private let config: String?
  private let launcher: [String]
  private let process = Mutex<ChildProcess?>(nil)

  /// - Parameters:
  ///   - program: the path of `approval-token`.
  ///   - board: the file of a board profile.
  ///   - config: the file of a configuration.
  ///   - launcher: a command that runs the program, for example under another clock.
  package init(
    program: String, state: String, board: String, config: String? = nil, launcher: [String] = []
  ) {
    self.program = program
    self.state = state
    self.board = board
    self.config = config
    self.launcher = launcher
  }

  /// The same device and files with the program of another version.
  package func updated(to program: String) -> VersionedToken {
    VersionedToken(program: program, state: state, board: board, config: config, launcher: launcher)
  }

  /// The same device and files with another configuration.
  package func configured(by config: String) -> VersionedToken {
    VersionedToken(program: program, state: state, board: board, config: config, launcher: launcher)
  }

  // MARK: Commands

  package func begin(_ words: [String], input: String = "") throws -> ChildProcess {
    let line = launcher + [program] + words + ["--state", state]
    return try ChildProcess(line[0], Array(line.dropFirst()), input: input)
  }

  package func command(_ words: String..., input: String = "") async throws -> Outcome {
    try await begin(words, input: input).outcome()
  }

  package func enroll(_ uri: String, _ options: String...) async throws {
    try await begin(["enroll", "-"] + options, input: uri + "\n").outcome().succeeded()
  }

  /// Enrolls an account whose PIN is chosen at the panel.
  package func enroll(_ uri: String, _ options: String..., choosing pin: String) async throws {
    let enrollment = try begin(["enroll", "-"] + options, input: uri + "\n")
    try await choose(pin)
    try await enrollment.outcome().succeeded()
  }

  package func accounts() async throws -> [TestToken.Account] {
    try await command("accounts", "--json").succeeded().decoded()
  }

  package func audit() async throws -> [TestToken.AuditLine] {
    try await command("log", "--lines", "10000", "--json").succeeded().decoded()
  }

  package func provesItsLog() async throws -> Bool {
    struct Verification: Decodable { let intact: Bool }
    return try await command("log", "--verify", "--json").decoded(Verification.self).intact
  }

  // MARK: The service

  package func start() async throws {
    let child = try begin(["serve", "--board", board] + (config.map { ["--config", $0] } ?? []))
    process.withLock { $0 = child }
    try await child.output.line(with: "ready")
  }

  package var log: String {
    process.withLock { $0 }.map { $0.errors.lines.joined(separator: "\n") } ?? ""
  }

  package func stop() async throws {
    guard let child = process.withLock({ $0 }) else { return }
    child.send(SIGTERM)
    try await child.exit()
  }

  package func end() { process.withLock { $0?.send(SIGKILL) } }

  package func isConnected() async throws {
    struct Status: Decodable {
      struct Server: Decodable { let connection: String }
      let servers: [Server]
    }
    try await wait("a connection") {
      try await self.command("status", "--json").succeeded().decoded(Status.self).servers
        .contains { $0.connection == "connected" }
    }
  }

  // MARK: The panel

  private func led() async throws -> String {
    struct LED: Decodable { let meaning: String }
    return try await command("simulate", "led", "--json").succeeded().decoded(LED.self).meaning
  }

  package func shows(_ meaning: String) async throws {
    try await wait("\"\(meaning)\" on the LED") { try await self.led() == meaning }
  }

  /// Waits for `prompt`, acts after the guard time, and waits until the LED shows something else; acts again if it does
  /// not.
  private func act(at prompt: String, _ words: [String]) async throws {
    try await shows(prompt)
    for _ in 1...5 {
      try await Task.sleep(for: .milliseconds(700))
      try await begin(["simulate"] + words).outcome().succeeded()
      for _ in 1...20 {
        if try await led() != prompt { return }
        try await Task.sleep(for: .milliseconds(100))
      }
    }
    throw OutputTimeoutError(description: "a reaction to \(words) at \"\(prompt)\"")
  }

  package func hold() async throws { try await act(at: "confirmation wanted", ["hold", "1"]) }

  /// Presses the button twice, which denies.
  package func deny(at prompt: String = "confirmation wanted") async throws { try await act(at: prompt, ["double"]) }

  package func type(_ digits: String, at wanted: Wanted = .pin) async throws {
    try await act(at: wanted.rawValue, ["keys"] + digits.map(String.init) + ["enter"])
  }

  package func choose(_ pin: String) async throws {
    for wanted in [Wanted.newPIN, .newPINAgain] { try await type(pin, at: wanted) }
  }

  private func wait(_ what: String, until isTrue: () async throws -> Bool) async throws {
    do { _ = try await eventually(what) { try await isTrue() ? true : nil } } catch {
      throw OutputTimeoutError(description: "\(error); the token's log:\n\(log)")
    }
  }
}
