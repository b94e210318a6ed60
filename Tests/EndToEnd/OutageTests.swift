// SPDX-License-Identifier: Apache-2.0
import ProgramHarness
import Testing

extension EndToEnd {
  /// Lost and duplicate hints, broken connections, stopped servers: the list is authoritative, and an answer counts
  /// once.
  @Suite struct Outages {
    enum Death: String, CaseIterable { case sigterm, kill9 }

    @Test func aRequestMadeWhileTheTokenWasOffIsFoundInTheList() async throws {
      try await withScene { scene in
        try await scene.token.stop()
        let transaction = try await scene.ask()
        try await scene.token.startConnected()
        try await expectApproval(of: transaction, byAHoldIn: scene)
      }
    }

    @Test func hintsAboutOneRequestAreOneRequest() async throws {
      let sink = try CallbackSink()
      defer { sink.close() }
      let proxy = try CuttingProxy()
      defer { proxy.close() }
      try await withScene(behind: proxy) { scene in
        let transaction = try await scene.ask(callback: sink.address)
        try await scene.token.log.line(with: "opened request \(transaction)")
        for _ in 1...2 {
          let mark = try scene.token.log.mark
          proxy.cut()
          // Each time the stream resumes and the list is read again.
          try await scene.token.log.line(with: "] connected to", from: mark)
        }
        try await expectApproval(of: transaction, byAHoldIn: scene)
        let kinds = try await scene.token.audit(of: transaction).map(\.kind)
        #expect(kinds == ["announced", "opened", "decided", "settled"])
        _ = try await sink.firstCall()
        #expect(sink.calls.count == 1)
      }
    }

    @Test(arguments: Death.allCases)
    func theServerIsRestartedWhileAPersonThinks(death: Death) async throws {
      try await withScene { scene in
        let transaction = try await scene.ask()
        try await scene.token.log.line(with: "opened request \(transaction)")
        try await die(death, scene.server)
        try await scene.token.log.line(with: "not connected to")
        let pending = try await scene.token.command("pending", "--json")
        #expect(pending.exit == .code(69))
        #expect(try await scene.token.pendingFacts().map(\.stale) == [true])
        let mark = try scene.token.log.mark
        try await scene.server.start()
        try await scene.token.log.line(with: "] connected to", from: mark)
        try await expectApproval(of: transaction, byAHoldIn: scene)
        #expect(try await scene.token.audit(of: transaction).count { $0.kind == "announced" } == 1)
      }
    }

    @Test(arguments: Death.allCases)
    func anAnswerGivenWhileTheServerIsDownArrivesLater(death: Death) async throws {
      try await withScene { scene in
        let transaction = try await scene.ask()
        try await scene.token.log.line(with: "opened request \(transaction)")
        try await die(death, scene.server)
        try await scene.token.answer(transaction, with: .hold)
        try await scene.token.shows("outcome unknown, retrying")
        try await scene.server.start()
        #expect(try await scene.settled(transaction).hasPrefix("approved, receipt "))
        #expect(try await scene.portal.finalResult(of: transaction).isAuthenticated)
      }
    }

    @Test func anAnswerThatNeverArrivedInTimeIsUnknownUntilTheServerTells() async throws {
      let short = """
        [[type]]
        name = "short"
        method = "push"
        request_expires_in = 15
        """
      try await withScene(types: short) { scene in
        let transaction = try await scene.ask(type: "short")
        try await scene.token.log.line(with: "opened request \(transaction)")
        try await scene.server.kill9()
        try await scene.token.answer(transaction, with: .hold)
        #expect(try await scene.settled(transaction).hasPrefix("unknown: "))
        try await scene.token.shows("outcome unknown, retrying")
        let mark = try scene.token.log.mark
        try await scene.server.start()
        try await scene.token.log.line(
          with: "settled request \(transaction)", from: mark)
        #expect(try await scene.token.ending(of: transaction) == "expired")
        try await scene.token.shows("idle, connected")
        #expect(try await scene.portal.result(of: transaction).isAuthenticated == false)
      }
    }

    @Test func aLostResponseIsAskedForAgainUnderTheSameKey() async throws {
      let sink = try CallbackSink()
      defer { sink.close() }
      let proxy = try CuttingProxy()
      defer { proxy.close() }
      try await withScene(behind: proxy) { scene in
        let transaction = try await scene.ask(callback: sink.address)
        try await scene.token.log.line(with: "opened request \(transaction)")
        proxy.swallowAnswers()
        try await scene.token.answer(transaction, with: .hold)
        // The server has decided and responded, but the token has not received the response.
        try await scene.server.log.line(with: "transaction \(transaction): authenticated")
        try await scene.token.shows("talking to the token server")
        proxy.cut(refusing: true)
        try await scene.token.log.line(with: "request \(transaction): trying again")
        try await scene.token.shows("outcome unknown, retrying")
        proxy.mend()
        // Only the answer's own idempotency key returns its receipt; any other would be "approved elsewhere".
        #expect(try await scene.settled(transaction).hasPrefix("approved, receipt "))
        #expect(try await scene.portal.finalResult(of: transaction).isAuthenticated)
        #expect(scene.server.logged("transaction \(transaction): ") == 2)
        _ = try await sink.firstCall()
        #expect(sink.calls.count == 1)
        #expect(try await scene.token.audit(of: transaction).count { $0.kind == "decided" } == 1)
      }
    }
  }
}

private func die(_ death: EndToEnd.Outages.Death, _ server: TestServer) async throws {
  switch death {
  case .sigterm: try await server.stop()
  case .kill9: try await server.kill9()
  }
}

private func expectApproval(of transaction: String, byAHoldIn scene: Scene) async throws {
  try await scene.token.answer(transaction, with: .hold)
  #expect(try await scene.settled(transaction).hasPrefix("approved, receipt "))
  #expect(try await scene.portal.finalResult(of: transaction).isAuthenticated)
  #expect(scene.server.logged("transaction \(transaction): authenticated") == 1)
}
