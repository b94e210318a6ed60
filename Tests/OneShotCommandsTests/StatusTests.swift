// SPDX-License-Identifier: Apache-2.0
import ArgumentParser
import ControlProtocol
import Foundation
import FrontPanel
import Glibc
import MobileAuth
import Testing

@testable import ApprovalTokenCommands
@testable import OneShotCommands

@Suite(.timeLimit(.minutes(5))) struct StatusTests {
  private func withState(_ body: (Status) async throws -> Void) async throws {
    var template = Array("/tmp/status-tests-XXXXXX".utf8CString)
    try #require(mkdtemp(&template) != nil)
    let folder = String(decoding: template.dropLast().map(UInt8.init(bitPattern:)), as: UTF8.self)
    defer {
      for name in ["vault.sqlite3", "vault.sqlite3-shm", "vault.sqlite3-wal", "device-secret", ""] {
        Glibc.remove("\(folder)/\(name)")
      }
    }
    let command = try Status.parse(["--state", folder])
    // Without an installed service.
    try await InstalledService.$root.withValue(folder) { try await body(command) }
  }

  @Test("With its vault, the accounts are counted") func withVault() async throws {
    try await withState { command in
      _ = try command.state.openVault(creating: true)
      let text = command.describe(try command.withoutService())
      #expect(text == "not running: start `approval-token serve`\naccounts  0")
    }
  }

  /// Fails if a stopped service, whose device secret only its unit gets, is not reported as stopped.
  @Test("A vault that cannot be opened does not hide that no service runs") func withoutSecret() async throws {
    try await withState { command in
      _ = try command.state.openVault(creating: true)
      try #require(unlink("\(command.state.directory)/device-secret") == 0)
      let status = try command.withoutService()
      let lines = command.describe(status).split(separator: "\n")
      try #require(lines.count == 2)
      #expect(lines[0] == "not running: start `approval-token serve`")
      #expect(lines[1].hasPrefix("accounts  unknown: no device secret for the vault in \(command.state.directory)"))
      let json = String(decoding: try JSONEncoder().encode(status), as: UTF8.self)
      #expect(json.contains(#""running":false"#) && json.contains(#""accounts_unknown":"no device secret"#))
      #expect(json.contains(#""remedy":"start `approval-token serve`""#) && !json.contains(#""accounts":"#))
      await #expect(throws: ExitCode(69)) { try await command.perform() }
    }
  }

  /// The legend has all causes in one line; which one it is would have to be counted at the LED.
  @Test(
    "What the LED counts is said, and of several causes only the one that applies",
    arguments: [
      (.pinWrong(remaining: 2), "wrong PIN or choice, 2 attempts left"),
      (.pinWrong(remaining: 1), "wrong PIN or choice, 1 attempt left"),
      (.pinRefused(rule: 1), "new PIN refused: block list"),
      (.pinRefused(rule: 5), "new PIN refused: entries differ"),
      (.enrollmentFailed(cause: 2), "enrollment failed: server not reached"),
      (.enrollmentFailed(cause: 9), Indication.enrollmentFailed(cause: 9).row.meaning),
      (.idle(pending: 3), "idle, connected"), (.entering, "digits typed: Enter submits"),
    ] as [(Indication, String)])
  func ledWords(indication: Indication, words: String) throws {
    var status = ServiceStatus(running: true, accounts: 1, mustEnroll: 0)
    status.led = LEDStatus(
      meaning: indication.row.meaning, color: "red", isLit: true, count: indication.count, entries: 0)
    let lines = try Status.parse(["--state", "/nowhere"]).describe(status).split(separator: "\n")
    #expect(lines.contains("LED       \(words)"))
  }
}
