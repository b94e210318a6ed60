// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import BuiltPrograms
import Foundation
import ProgramHarness
import TestSecurityKey
import Testing

extension EndToEnd {
  /// Authenticators outside of the panel: the plug-in in `examples/hmac-plug-in`, and simulated ones.
  @Suite struct Plugins {
    private static let examples =
      URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
      .appending(path: "examples").path

    private static func types(_ id: String, _ scripts: String) -> String {
      types(id, verifiedBy: "scripts = \"\(examples)/\(scripts)\"")
    }

    static func types(_ id: String, verifiedBy verifier: String) -> String {
      authenticator(id, verifiedBy: verifier) + """
        [[type]]
        name = "transfer"
        method = "push_with_custom_authenticator"
        authenticator = "\(id)"
        request_expires_in = 600

        """
    }

    /// A custom authenticator of the server.
    static func authenticator(_ id: String, verifiedBy verifier: String) -> String {
      """
      [[authenticator]]
      id = "\(id)"
      name = "\(id)"
      kind = "custom"
      \(verifier)
      \(verifier.hasPrefix("scripts") ? "time_limit_seconds = 60" : "")

      """
    }

    /// - Parameter plugin: the text of the plug-in's configuration.
    func withPlugin(
      _ plugin: String, _ types: String, _ body: @escaping (EndToEndFixture) async throws -> Void
    ) async throws {
      try await withPINScene(
        settings: "max_pin_attempts = 3\ncustom_authenticators = true", types: types,
        configuration: { server in
          let folder = URL(filePath: server.directory).deletingLastPathComponent().appending(path: "authenticators.d")
          try? FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
          try? plugin.write(to: folder.appending(path: "plug-in.toml"), atomically: true, encoding: .utf8)
          return "[authenticators]\n"
        }, body)
    }

    /// With the reader of a simulated security key.
    func withKey(
      at path: String, verifiedBy verifier: String, _ body: @escaping (EndToEndFixture) async throws -> Void
    ) async throws {
      let plugin = """
        authenticator = "key"
        command = ["\(try BuiltProgram.path("reader-key-probe"))", "\(path)"]
        """
      try await withPlugin(plugin, Self.types("key", verifiedBy: verifier), body)
    }

    private func withSimulated(_ body: @escaping (EndToEndFixture) async throws -> Void) async throws {
      try await withPINScene(
        settings: "max_pin_attempts = 3\ncustom_authenticators = true",
        types: Self.types("employee-number", "employee-number"),
        configuration: { _ in "[authenticators]\nsimulated = [\"employee-number\"]\n" }, body)
    }

    /// Registers the authenticator; the account is not logged in.
    func register(_ id: String, _ token: TestToken, answer: () async throws -> Void = {}) async throws {
      let registration = try token.begin("authenticator", "register", "alice", id)
      try await token.type("13589")
      try await token.asks("confirmation wanted")
      try await token.perform(.hold)
      try await answer()
      try await registration.outcome().succeeded()
    }

    /// Answers for the simulated authenticator as soon as it is asked.
    private func simulate(_ token: TestToken, _ words: String...) async throws {
      try await token.shows("number or other data wanted")
      _ = try await eventually("the authenticator is asked") {
        let outcome =
          switch words.count {
          case 1: try await token.command("simulate", "custom", words[0])
          default: try await token.command("simulate", "custom", words[0], words[1])
          }
        return try outcome.succeeded().output.contains("ignored") ? nil : true
      }
    }

    @Test("A plug-in registers, approves and logs in, after a hold, and its server's scripts verify the challenge")
    func pluginFromEndToEnd() async throws {
      let plugin = """
        authenticator = "hmac"
        command = ["\(Self.examples)/hmac-plug-in/plug-in"]
        hold = true
        """
      try await withPlugin(plugin, Self.types("hmac", "hmac-plug-in")) { fixture in
        let token = fixture.token
        try await register("hmac", token)
        let transaction = try await fixture.askForPIN(type: "transfer")
        try await token.asks("confirmation wanted")
        try await token.perform(.hold)
        #expect(try await fixture.settled(transaction).hasPrefix("approved, receipt "))
        let result = try await fixture.portal.finalResult(of: transaction)
        #expect(result.isAuthenticated && result.authenticationMethod == "push_with_custom_authenticator")
        #expect(try await token.audit().contains { $0.kind == "decided" && $0.detail == "accept by hmac" })
        #expect(try await fixture.server.pinFailures() == 0)

        // What the plug-in wants back is in the vault.
        try await token.kill9()
        try await token.startConnected()
        let login = try token.begin("login", "alice", "--authenticator", "hmac")
        try await token.asks("confirmation wanted")
        try await token.perform(.hold)
        try await login.outcome().succeeded()
        try await token.command("authenticator", "deregister", "alice", "hmac").succeeded()
      }
    }

    @Test(
      "A security key registers, approves and logs in with touches; without them, the PIN is left",
      arguments: ["signature = \"security_key\"", "scripts = \"\(examples)/security-key\""])
    func securityKey(verifier: String) async throws {
      let path = "/tmp/security-key-\(UUID().uuidString.prefix(8))"
      let key = try TestSecurityKey(at: path)
      defer { key.stop() }
      try await withKey(at: path, verifiedBy: verifier) { fixture in
        let token = fixture.token
        try await register("key", token)
        let transaction = try await fixture.askForPIN(type: "transfer")
        #expect(try await fixture.settled(transaction).hasPrefix("approved, receipt "))
        let result = try await fixture.portal.finalResult(of: transaction)
        #expect(result.isAuthenticated && result.authenticationMethod == "push_with_custom_authenticator")
        try await token.command("login", "alice", "--authenticator", "key").succeeded()

        // The key is not touched, and the PIN is typed instead.
        key.set(.untouched)
        let waiting = try await fixture.askForPIN(type: "transfer")
        try await token.type("13589", when: .number)
        #expect(try await fixture.settled(waiting).hasPrefix("approved, receipt "))
        #expect(try await fixture.portal.finalResult(of: waiting).authenticationMethod == "push_with_pin")

        // A key that was not touched in time, and answers with a denial, denies nothing: it is touched later.
        key.set(.givesUp(after: .milliseconds(300), with: 0x27))
        let asked = key.calls.count
        let late = try await fixture.askForPIN(type: "transfer")
        _ = try await eventually("the key is asked again") { key.calls.count >= asked + 2 ? true : nil }
        key.set(.touched(after: .zero))
        #expect(try await fixture.settled(late).hasPrefix("approved, receipt "))
        let signed = try await fixture.portal.finalResult(of: late)
        #expect(signed.isAuthenticated && signed.authenticationMethod == "push_with_custom_authenticator")
        #expect(try await fixture.server.pinFailures() == 0)

        // A lost key is deregistered without it.
        key.stop()
        try await token.command("authenticator", "deregister", "alice", "key").succeeded()
      }
    }

    @Test("A simulated authenticator approves; canceled it denies with its reason; its fallback is the PIN")
    func simulated() async throws {
      try await withSimulated { fixture in
        let token = fixture.token
        try await register("employee-number", token) { try await simulate(token, "4711") }

        let approved = try await fixture.askForPIN(type: "transfer")
        try await simulate(token, "4711")
        #expect(try await fixture.settled(approved).hasPrefix("approved, receipt "))

        let denied = try await fixture.askForPIN(type: "transfer")
        try await simulate(token, "--cancel", "the reader is locked")
        #expect(try await fixture.settled(denied).hasSuffix("(9006)"))
        #expect(try await !fixture.portal.finalResult(of: denied).isAuthenticated)
        #expect(
          try await token.audit().contains {
            $0.kind == "decided" && $0.detail == "deny by employee-number: the reader is locked"
          })

        let fallback = try await fixture.askForPIN(type: "transfer")
        try await simulate(token, "--fallback")
        try await token.type("13589")
        #expect(try await fixture.settled(fallback).hasPrefix("approved, receipt "))
        #expect(try await fixture.portal.finalResult(of: fallback).authenticationMethod == "push_with_pin")

        let typed = try await fixture.askForPIN(type: "transfer")
        try await token.type("13589", when: .number)
        #expect(try await fixture.settled(typed).hasPrefix("approved, receipt "))
        #expect(try await fixture.portal.finalResult(of: typed).authenticationMethod == "push_with_pin")
        #expect(try await fixture.server.pinFailures() == 0)
      }
    }

    @Test("A simulated key and a simulated badge sign; another badge is refused, and the reader can be unplugged")
    func simulatedSigners() async throws {
      let types =
        Self.types("key", verifiedBy: "signature = \"security_key\"")
        + Self.types("badge", verifiedBy: "signature = \"badge\"\nmax_failures = 2")
        .replacing("\"transfer\"", with: "\"withdrawal\"")
      try await withPINScene(
        settings: "max_pin_attempts = 3\ncustom_authenticators = true", types: types,
        configuration: { _ in "[authenticators]\nsimulated_key = \"key\"\nsimulated_badge = \"badge\"\n" }
      ) { fixture in
        let token = fixture.token
        try await register("key", token) { try await perform(token, "key", "touch") }
        let first = try await fixture.askForPIN(type: "transfer")
        try await perform(token, "key", "touch")
        #expect(try await fixture.settled(first).hasPrefix("approved, receipt "))

        let registration = try token.begin("authenticator", "register", "alice", "badge")
        try await token.asks("confirmation wanted")
        try await token.perform(.hold)
        try await perform(token, "badge", "red")
        try await registration.outcome().succeeded()
        // A badge counts only after a hold.
        let second = try await fixture.askForPIN(type: "withdrawal")
        try await token.asks("confirmation wanted")
        #expect(
          try await token.command("simulate", "badge", "red").succeeded().output.contains("no authenticator is asked"))
        try await token.perform(.hold)
        try await perform(token, "badge", "blue")
        try await token.asks("confirmation wanted")
        try await token.perform(.hold)
        try await perform(token, "badge", "red")
        #expect(try await fixture.settled(second).hasPrefix("approved, receipt "))

        // Without its reader, the request wants the PIN at once.
        try await token.command("simulate", "badge", "none").succeeded()
        let third = try await fixture.askForPIN(type: "withdrawal")
        try await token.type("13589")
        #expect(try await fixture.settled(third).hasPrefix("approved, receipt "))
        #expect(try await fixture.server.pinFailures() == 0)
      }
    }

    /// Uses a simulated reader as soon as it is asked.
    private func perform(_ token: TestToken, _ reader: String, _ action: String) async throws {
      try await token.shows("number or other data wanted")
      _ = try await eventually("the reader is asked") {
        try await token.command("simulate", reader, action).succeeded().output.contains("ignored") ? nil : true
      }
    }

    @Test("A login with the authenticator's fallback continues with the PIN") func loginFallback() async throws {
      try await withSimulated { fixture in
        let token = fixture.token
        try await register("employee-number", token) { try await simulate(token, "4711") }
        let login = try token.begin("login", "alice", "--authenticator", "employee-number")
        try await simulate(token, "--fallback")
        try await token.type("13589")
        try await login.outcome().succeeded()
        let canceled = try token.begin("login", "alice", "--authenticator", "employee-number", "--json")
        try await simulate(token, "--cancel", "no")
        let outcome = try await canceled.outcome()
        #expect(outcome.exit == .code(77) && outcome.errors.contains("\"number\":9006"), "\(outcome)")
        #expect(outcome.errors.contains("\"underlying_error\":\"no\""))
      }
    }
  }
}
