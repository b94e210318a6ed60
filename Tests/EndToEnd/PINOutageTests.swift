// SPDX-License-Identifier: Apache-2.0
import ProgramHarness
import Testing

extension EndToEnd {
  /// One typed PIN is one attempt, even if messages are lost.
  @Suite struct PINOutages {
    @Test("A lost verdict on a wrong PIN is heard without another attempt")
    func aLostVerdictOnAWrongPINIsHeardWithoutAnotherAttempt() async throws {
      let proxy = try DisconnectingProxy()
      defer { proxy.close() }
      try await withPINScene(behind: proxy) { fixture in
        let transaction = try await fixture.askForPIN()
        try await fixture.token.shows("PIN wanted")
        try await proxy.swallowAnswers()
        try await fixture.token.type(EndToEndFixture.wrongPIN)
        try await fixture.server.log.line(with: "PIN wrong, 2 of 3 attempts left")
        proxy.cut(refusing: true)
        try await fixture.token.log.line(with: "request \(transaction): trying again")
        proxy.mend()
        try await fixture.token.log.line(with: "pin-wrong request \(transaction)", "2 of 3 attempts left")
        #expect(try await fixture.server.pinFailures() == 1)
        #expect(fixture.server.logged(": PIN ") == 1)

        try await fixture.token.type("13589")
        #expect(try await fixture.settled(transaction).hasPrefix("approved, receipt "))
        #expect(try await fixture.portal.finalResult(of: transaction).usedAuthenticationAttempts == 2)
      }
    }

    @Test("A lost verdict on the right PIN is heard without another attempt")
    func aLostVerdictOnTheRightPINIsHeardWithoutAnotherAttempt() async throws {
      let sink = try CallbackSink()
      defer { sink.close() }
      let proxy = try DisconnectingProxy()
      defer { proxy.close() }
      try await withPINScene(behind: proxy) { fixture in
        let transaction = try await fixture.askForPIN(callback: sink.address)
        try await fixture.token.shows("PIN wanted")
        try await proxy.swallowAnswers()
        try await fixture.token.type("13589")
        try await fixture.server.log.line(with: "transaction \(transaction): authenticated")
        proxy.cut(refusing: true)
        try await fixture.token.log.line(with: "request \(transaction): trying again")
        proxy.mend()
        // Only the answer's own idempotency key returns its receipt.
        #expect(try await fixture.settled(transaction).hasPrefix("approved, receipt "))
        #expect(try await fixture.portal.finalResult(of: transaction).usedAuthenticationAttempts == 1)
        #expect(try await fixture.server.pinFailures() == 0)
        #expect(fixture.server.logged(": PIN ") == 1)
        _ = try await sink.firstCall()
        #expect(sink.calls.count == 1)
      }
    }

    /// The attempt is counted before it is verified, and verified before the response is sent: a killed server counts
    /// it once.
    @Test(
      "A server killed over an answer counts it once",
      arguments: [
        (EndToEndFixture.wrongPIN, 0), (EndToEndFixture.wrongPIN, 25), (EndToEndFixture.wrongPIN, 60), ("13589", 10),
        ("13589", 40),
      ])
    func aServerKilledOverAnAnswerCountsItOnce(pin: String, milliseconds: Int) async throws {
      try await withPINScene { fixture in
        let transaction = try await fixture.askForPIN()
        async let typing = fixture.token.type(pin)
        try await fixture.token.log.line(with: "decided request \(transaction)")
        try await Task.sleep(for: .milliseconds(milliseconds))
        try await fixture.server.kill9()
        _ = try await typing
        try await fixture.server.start()
        if pin == EndToEndFixture.wrongPIN {
          try await fixture.token.log.line(with: "pin-wrong request \(transaction)", "2 of 3 attempts left")
          #expect(try await fixture.server.pinFailures() == 1)
          #expect(try await fixture.portal.result(of: transaction).usedAuthenticationAttempts == 1)
          try await fixture.token.type("13589")
        }
        #expect(try await fixture.settled(transaction).hasPrefix("approved, receipt "))
        #expect(try await fixture.server.pinFailures() == 0)
        let attempts = try await fixture.portal.finalResult(of: transaction).usedAuthenticationAttempts
        #expect(attempts == (pin == EndToEndFixture.wrongPIN ? 2 : 1))
      }
    }
  }
}
