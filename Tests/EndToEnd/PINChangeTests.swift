// SPDX-License-Identifier: Apache-2.0
import ProgramHarness
import Testing

extension EndToEnd {
  @Suite struct PINChanges {
    @Test("The new PIN counts and the old one no more") func theNewPINCountsAndTheOldOneNoMore() async throws {
      try await withPINScene { fixture in
        let token = fixture.token
        let change = try token.begin("pin", "change")
        try await token.type(EndToEndFixture.wrongPIN, until: TestToken.pinWrong)
        #expect(try await fixture.server.pinFailures() == 1)
        try await token.type("13589")
        #expect(try await token.type("12345", when: .newPIN) == TestToken.newPINRefused)
        #expect(fixture.server.logged("PIN changed") == 0)
        try await token.choose("80261")
        try await change.outcome().succeeded()
        #expect(try await token.audit().count { $0.kind == "pin-changed" } == 1)
        #expect(fixture.server.logged("PIN changed") == 1)

        let transaction = try await fixture.askForPIN()
        try await token.type("13589")
        try await token.log.line(with: "pin-wrong request \(transaction)", "2 of 3 attempts left")
        try await token.type("80261")
        #expect(try await fixture.settled(transaction).hasPrefix("approved, receipt "))
      }
    }

    @Test("A canceled change keeps the old PIN", arguments: [Wanted.pin, .newPIN, .newPINAgain])
    func canceledChangeKeepsTheOldPIN(wanted: Wanted) async throws {
      try await withPINScene { fixture in
        let token = fixture.token
        let change = try token.begin("pin", "change", "--json")
        if wanted != .pin { try await token.type("13589") }
        if wanted == .newPINAgain { try await token.type("80261", when: .newPIN) }
        try await token.asks(wanted.rawValue)
        try await token.perform(.cancelKeys)
        let outcome = try await change.outcome()
        #expect(outcome.exit == .code(77))
        #expect(outcome.errors.contains("\"number\":9006"), "\(outcome.errors)")
        #expect(fixture.server.logged("PIN changed") == 0)
        try await fixture.expectApproval(typing: "13589")
      }
    }
  }
}
