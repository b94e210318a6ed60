// SPDX-License-Identifier: Apache-2.0
import Foundation
import JSONSchema
import JSONValues
import ProgramHarness
import Testing

extension EndToEnd {
  /// What `approval-token events --follow --json` prints, and what the scripts of an authenticator read and write,
  /// compared with the schemas in `docs/schemas`.
  @Suite struct Events {
    private static let example =
      URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
      .appending(path: "examples/employee-number").path

    /// The scripts of the example, whose input and output are kept.
    private func recordingScripts(in folder: TemporaryDirectory) throws {
      for name in ["register", "authenticate"] {
        let script = """
          #!/bin/sh
          cat >input.$$
          cat input.$$ >>inputs
          echo >>inputs
          \(Self.example)/\(name) <input.$$ | tee -a outputs
          """
        try FileManager.default.setAttributes(
          [.posixPermissions: 0o755], ofItemAtPath: try folder.write(script, to: name))
      }
    }

    private func types(_ scripts: TemporaryDirectory) -> String {
      """
      [[authenticator]]
      id = "employee-number"
      name = "Employee number"
      kind = "custom"
      scripts = "\(scripts.path)"
      time_limit_seconds = 60
      [[type]]
      name = "transfer"
      method = "push_with_custom_authenticator"
      authenticator = "employee-number"
      request_expires_in = 600

      """
    }

    private func lines(_ text: String) -> [String] { text.split(separator: "\n").map(String.init) }

    private func expectValid(_ lines: [String], _ schema: String) throws {
      #expect(!lines.isEmpty)
      for line in lines { #expect(try JSONSchema(named: schema).violations(in: line) == []) }
    }

    @Test("A program gets each step of logins, registrations and requests, without a secret") func events() async throws
    {
      let scripts = try TemporaryDirectory()
      defer { scripts.remove() }
      try recordingScripts(in: scripts)
      try await withPINScene(
        settings: "max_pin_attempts = 3\ncustom_authenticators = true", types: types(scripts),
        configuration: { _ in "[authenticators]\nkeypad_codes = [\"employee-number\"]\n" }
      ) { fixture in
        let token = fixture.token
        let follower = try token.begin("events", "--follow", "--json")
        let watcher = try token.begin("watch", "--json")
        try await follower.output.line(with: "\"following\"")
        try await watcher.output.line(with: "\"idle\"")
        try await act(fixture)
        try await follower.output.line(with: "\"must-enroll\"")
        let events = follower.output.lines
        try expectValid(events, "events")
        try expectValid(watcher.output.lines, "watch")
        for name in ["inputs", "outputs"] {
          let text = try String(contentsOfFile: scripts.file(name), encoding: .utf8)
          try expectValid(lines(text), name == "inputs" ? "script-input" : "script-result")
        }
        // Times and identifiers can have the digits by chance.
        let text = events.joined(separator: "\n").replacing(/"at_ms":\d+|[0-9a-f-]{36}/, with: "")
        for secret in ["13589", EndToEndFixture.wrongPIN, "4711", "0815"] { #expect(!text.contains(secret)) }
        #expect(events.compactMap(summary) == Self.expected)
      }
    }

    /// A registration with a login on the way, an approval after a refused code and a wrong PIN, a canceled request, a
    /// login with the authenticator, its deregistration, and the removal of the user by the portal.
    private func act(_ fixture: EndToEndFixture) async throws {
      let (token, number) = (fixture.token, "employee-number")
      let registration = try token.begin("authenticator", "register", "alice", number)
      try await token.type("13589")
      try await token.asks("confirmation wanted")
      try await token.perform(.hold)
      try await token.type("4711", when: .number)
      try await registration.outcome().succeeded()

      let approved = try await fixture.askForPIN(type: "transfer")
      try await token.type("0815", when: .number, until: "not one of the choices, or code refused")
      try await token.asks("number or other data wanted")
      try await token.press("enter")
      try await token.type(EndToEndFixture.wrongPIN, until: TestToken.pinWrong)
      try await token.type("13589")
      _ = try await fixture.settled(approved)
      let canceled = try await fixture.ask()
      try await token.answer(canceled, with: .cancelKeys)
      _ = try await fixture.settled(canceled)

      try await token.command("logout").succeeded()
      let login = try token.begin("login", "alice", "--authenticator", number)
      try await token.type("4711", when: .number)
      try await login.outcome().succeeded()
      try await token.command("authenticator", "deregister", "alice", number).succeeded()
      _ = try await token.command("login", "alice", "--authenticator", "finger")
      _ = try await fixture.portal.call("DELETE", "/users/alice/devices/\(fixture.device)")
    }

    private static let expected = [
      "registration-started employee-number", "authentication-started pin", "challenge pin login pin",
      "authenticated pin", "challenge employee-number registration confirmation",
      "challenge employee-number registration custom", "authenticator-registered employee-number",
      "challenge employee-number request custom pin", "challenge employee-number request custom pin 9027",
      "challenge pin request pin", "challenge pin request pin 9009", "request-handled pin accept",
      "challenge request confirmation", "request-failed 9006", "logged-out",
      "authentication-started employee-number", "challenge employee-number login custom pin",
      "authenticated employee-number", "deregistration-started employee-number",
      "authenticator-deregistered employee-number", "authentication-started finger",
      "authentication-failed finger 9015",
      "must-enroll 9003",
    ]

    /// The members of an event that has an account.
    private func summary(_ line: String) -> String? {
      guard let event = JSONValue(parsing: Array(line.utf8)), event["account"] != nil else { return nil }
      let texts = ["event", "authenticator", "purpose", "kind", "decision"].compactMap { event[$0]?.text }
      let fallbacks = (event["fallbacks"]?.list ?? []).compactMap(\.text)
      let code = event["failure"]?["code"]?.integer.map { "\($0)" }
      return (texts + fallbacks + [code].compactMap(\.self)).joined(separator: " ")
    }
  }
}
