// SPDX-License-Identifier: Apache-2.0
import ProgramHarness
import Testing

extension EndToEnd {
  /// One typed PIN is one attempt, even if messages are lost.
  @Suite struct PINOutages {
    @Test func aLostVerdictOnAWrongPINIsHeardWithoutAnotherAttempt() async throws {
      let proxy = try CuttingProxy()
      defer { proxy.close() }
      try await withPINScene(behind: proxy) { scene in
        let transaction = try await scene.askForPIN()
        try await scene.token.shows("PIN wanted")
        proxy.swallowAnswers()
        try await scene.token.type(Scene.wrongPIN)
        try await scene.server.log.line(with: "PIN wrong, 2 of 3 attempts left")
        proxy.cut(refusing: true)
        try await scene.token.log.line(with: "request \(transaction): trying again")
        proxy.mend()
        try await scene.token.log.line(with: "pin-wrong request \(transaction)", "2 of 3 attempts left")
        #expect(try await scene.server.pinFailures() == 1)
        #expect(scene.server.logged(": PIN ") == 1)

        try await scene.token.type("13589")
        #expect(try await scene.settled(transaction).hasPrefix("approved, receipt "))
        #expect(try await scene.portal.finalResult(of: transaction).usedAuthenticationAttempts == 2)
      }
    }

    @Test func aLostVerdictOnTheRightPINIsHeardWithoutAnotherAttempt() async throws {
      let sink = try CallbackSink()
      defer { sink.close() }
      let proxy = try CuttingProxy()
      defer { proxy.close() }
      try await withPINScene(behind: proxy) { scene in
        let transaction = try await scene.askForPIN(callback: sink.address)
        try await scene.token.shows("PIN wanted")
        proxy.swallowAnswers()
        try await scene.token.type("13589")
        try await scene.server.log.line(with: "transaction \(transaction): authenticated")
        proxy.cut(refusing: true)
        try await scene.token.log.line(with: "request \(transaction): trying again")
        proxy.mend()
        // Only the answer's own idempotency key returns its receipt.
        #expect(try await scene.settled(transaction).hasPrefix("approved, receipt "))
        #expect(try await scene.portal.finalResult(of: transaction).usedAuthenticationAttempts == 1)
        #expect(try await scene.server.pinFailures() == 0)
        #expect(scene.server.logged(": PIN ") == 1)
        _ = try await sink.firstCall()
        #expect(sink.calls.count == 1)
      }
    }

    /// The attempt is counted before it is verified, and verified before the response is sent: a killed server counts
    /// it once.
    @Test(arguments: [(Scene.wrongPIN, 0), (Scene.wrongPIN, 25), (Scene.wrongPIN, 60), ("13589", 10), ("13589", 40)])
    func aServerKilledOverAnAnswerCountsItOnce(pin: String, milliseconds: Int) async throws {
      try await withPINScene { scene in
        let transaction = try await scene.askForPIN()
        async let typing = scene.token.type(pin)
        try await scene.token.log.line(with: "decided request \(transaction)")
        try await Task.sleep(for: .milliseconds(milliseconds))
        try await scene.server.kill9()
        _ = try await typing
        try await scene.server.start()
        if pin == Scene.wrongPIN {
          try await scene.token.log.line(with: "pin-wrong request \(transaction)", "2 of 3 attempts left")
          #expect(try await scene.server.pinFailures() == 1)
          #expect(try await scene.portal.result(of: transaction).usedAuthenticationAttempts == 1)
          try await scene.token.type("13589")
        }
        #expect(try await scene.settled(transaction).hasPrefix("approved, receipt "))
        #expect(try await scene.server.pinFailures() == 0)
        let attempts = try await scene.portal.finalResult(of: transaction).usedAuthenticationAttempts
        #expect(attempts == (pin == Scene.wrongPIN ? 2 : 1))
      }
    }
  }
}
