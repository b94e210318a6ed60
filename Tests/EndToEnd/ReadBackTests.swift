// SPDX-License-Identifier: Apache-2.0
import ProgramHarness
import Testing

extension EndToEnd {
  /// A payment whose amount the user types on the keypad before the PIN.
  @Suite struct ReadBack {
    private static let types = """
      [[type]]
      name = "transfer"
      method = "push_with_pin"
      read_back = "digits"
      request_expires_in = 600
      """

    private struct Started: Decodable { let transactionId: String }

    private func start(_ fixture: EndToEndFixture, _ digits: String) async throws -> Portal.Reply {
      try await fixture.portal.call(
        "POST", "/authenticate/user",
        [
          "type": "transfer", "user_id": "alice", "device_id": fixture.device, "callback_uri": "http://127.0.0.1:9/",
          "secure_message": "Pay 1,250 EUR to ACME?", "message": "A payment", "read_back": digits,
        ])
    }

    @Test("The amount is typed before the PIN; wrong digits take no attempt") func amountAndPIN() async throws {
      try await withPINScene(types: Self.types) { fixture in
        let token = fixture.token
        #expect(try await start(fixture, "9999").status == 400)
        let transaction = try await start(fixture, "1250").outcome.decoded(Started.self).transactionId
        try await token.log.line(with: "opened request \(transaction)", "transfer, digits to type")
        // The PIN in place of the amount is not sent.
        try await token.type("13589", when: .number, until: "not one of the choices, or code refused")
        #expect(try await fixture.server.pinFailures() == 0)
        try await token.type("1250", when: .number)
        try await token.type("13589")
        #expect(try await fixture.settled(transaction).hasPrefix("approved, receipt "))
        #expect(try await token.audit(of: transaction).contains { $0.detail == "accept by PIN, after the digits" })
        let result = try await fixture.portal.finalResult(of: transaction)
        #expect(result.isAuthenticated && result.usedAuthenticationAttempts == 1)
      }
    }
  }
}
