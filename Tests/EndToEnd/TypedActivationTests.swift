// SPDX-License-Identifier: Apache-2.0
import Foundation
import ProgramHarness
import Testing

extension EndToEnd {
  @Suite struct TypedActivations {
    @Test("A token enrolls with the address of its server and a code that is typed on the keypad")
    func typedCode() async throws {
      try await withPINScene(users: []) { fixture in
        let token = fixture.token
        let uri = try #require(URLComponents(string: try await fixture.server.activation(for: "alice")))
        let members = Dictionary(uniqueKeysWithValues: (uri.queryItems ?? []).map { ($0.name, $0.value ?? "") })
        let (server, code) = (try #require(members["server"]), try #require(members["code"]))
        let pins = members["pin_sha256"].map { ["--pin", $0] } ?? []
        let enrollment = try token.begin(["enroll", "--server", server, "--json"] + pins)
        // With another check digit.
        let wrong = code.dropLast() + String((Int(String(code.suffix(1))) ?? 0) == 0 ? 1 : 0)
        try await token.type(String(wrong), when: .number, until: "not one of the choices, or code refused")
        try await token.type(code, when: .number)
        try await token.choose("13589")
        let outcome = try await enrollment.outcome().succeeded()
        #expect(outcome.errors.contains("typing error"))
        #expect(try await fixture.server.devices().flatMap(\.users).map(\.user) == ["alice"])
      }
    }

    @Test("Without a service there is no keypad for the code") func withoutService() async throws {
      let folder = try TemporaryDirectory()
      defer { folder.remove() }
      let token = TestToken(state: folder.file("token"), board: "simulated")
      let outcome = try await token.command("enroll", "--server", "https://auth.example.org")
      #expect(outcome.exit == .code(69) && outcome.errors.contains("serve"))
    }
  }
}
