// SPDX-License-Identifier: Apache-2.0
import ProgramHarness
import Testing

extension EndToEnd {
  /// Lost and duplicate hints, broken connections, stopped servers: the list is authoritative, and an answer counts
  /// once.
  @Suite struct Outages {
    enum Death: String, CaseIterable { case sigterm, kill9 }

    @Test("A request made while the token was off is found in the list")
    func aRequestMadeWhileTheTokenWasOffIsFoundInTheList() async throws {
      try await withScene { fixture in
        try await fixture.token.stop()
        let transaction = try await fixture.ask()
        try await fixture.token.startConnected()
        try await expectApproval(of: transaction, byAHoldIn: fixture)
      }
    }

    @Test("Hints about one request are one request") func hintsAboutOneRequestAreOneRequest() async throws {
      let sink = try CallbackSink()
      defer { sink.close() }
      let proxy = try DisconnectingProxy()
      defer { proxy.close() }
      try await withScene(behind: proxy) { fixture in
        let transaction = try await fixture.ask(callback: sink.address)
        try await fixture.token.log.line(with: "opened request \(transaction)")
        for _ in 1...2 {
          let mark = try fixture.token.log.mark
          proxy.cut()
          // Each time the stream resumes and the list is read again.
          try await fixture.token.log.line(with: "] connected to", from: mark)
        }
        try await expectApproval(of: transaction, byAHoldIn: fixture)
        let kinds = try await fixture.token.audit(of: transaction).map(\.kind)
        #expect(kinds == ["announced", "opened", "decided", "settled"])
        _ = try await sink.firstCall()
        #expect(sink.calls.count == 1)
      }
    }

    @Test("The server is restarted before the user answers", arguments: Death.allCases)
    func serverIsRestartedBeforeTheUserAnswers(death: Death) async throws {
      try await withScene { fixture in
        let transaction = try await fixture.ask()
        try await fixture.token.log.line(with: "opened request \(transaction)")
        let dead = try fixture.token.log.mark
        try await die(death, fixture.server)
        try await fixture.token.log.line(with: "not connected to", from: dead)
        let pending = try await fixture.token.command("pending", "--json")
        #expect(pending.exit == .code(69) && pending.errors.contains("\"number\":9001"), "\(pending.errors)")
        #expect(try await fixture.token.pendingRequests().map(\.stale) == [true])
        let mark = try fixture.token.log.mark
        try await fixture.server.start()
        try await fixture.token.log.line(with: "] connected to", from: mark)
        try await expectApproval(of: transaction, byAHoldIn: fixture)
        #expect(try await fixture.token.audit(of: transaction).count { $0.kind == "announced" } == 1)
      }
    }

    @Test("An answer given while the server is down arrives later", arguments: Death.allCases)
    func anAnswerGivenWhileTheServerIsDownArrivesLater(death: Death) async throws {
      try await withScene { fixture in
        let transaction = try await fixture.ask()
        try await fixture.token.log.line(with: "opened request \(transaction)")
        try await die(death, fixture.server)
        try await fixture.token.answer(transaction, with: .hold)
        try await fixture.token.shows("outcome unknown, retrying")
        try await fixture.server.start()
        #expect(try await fixture.settled(transaction).hasPrefix("approved, receipt "))
        #expect(try await fixture.portal.finalResult(of: transaction).isAuthenticated)
      }
    }

    @Test("An answer that never arrived in time is unknown until the server tells")
    func anAnswerThatNeverArrivedInTimeIsUnknownUntilTheServerTells() async throws {
      let short = """
        [[type]]
        name = "short"
        method = "push"
        request_expires_in = 30
        """
      try await withScene(types: short) { fixture in
        let transaction = try await fixture.ask(type: "short")
        try await fixture.token.log.line(with: "opened request \(transaction)")
        try await fixture.server.kill9()
        try await fixture.token.answer(transaction, with: .hold)
        #expect(try await fixture.settled(transaction, as: "unconfirmed").hasPrefix("unknown: "))
        try await fixture.token.shows("outcome unknown, retrying")
        let mark = try fixture.token.log.mark
        try await fixture.server.start()
        #expect(try await fixture.token.ending(of: transaction, from: mark) == "expired")
        try await fixture.token.shows("idle, connected")
        #expect(try await fixture.portal.result(of: transaction).isAuthenticated == false)
      }
    }

    @Test("A lost response is asked for again under the same key") func aLostResponseIsAskedForAgainUnderTheSameKey()
      async throws
    {
      let sink = try CallbackSink()
      defer { sink.close() }
      let proxy = try DisconnectingProxy()
      defer { proxy.close() }
      try await withScene(behind: proxy) { fixture in
        let transaction = try await fixture.ask(callback: sink.address)
        try await fixture.token.log.line(with: "opened request \(transaction)")
        try await proxy.swallowAnswers()
        try await fixture.token.answer(transaction, with: .hold)
        // The server has decided and responded, but the token has not received the response.
        try await fixture.server.log.line(with: "transaction \(transaction): authenticated")
        try await fixture.token.shows("talking to the token server")
        proxy.cut(refusing: true)
        try await fixture.token.log.line(with: "request \(transaction): trying again")
        try await fixture.token.shows("outcome unknown, retrying")
        proxy.mend()
        // Only the answer's own idempotency key returns its receipt; any other would be "approved elsewhere".
        #expect(try await fixture.settled(transaction).hasPrefix("approved, receipt "))
        #expect(try await fixture.portal.finalResult(of: transaction).isAuthenticated)
        #expect(fixture.server.logged("transaction \(transaction): ") == 2)
        _ = try await sink.firstCall()
        #expect(sink.calls.count == 1)
        #expect(try await fixture.token.audit(of: transaction).count { $0.kind == "decided" } == 1)
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

private func expectApproval(of transaction: String, byAHoldIn fixture: EndToEndFixture) async throws {
  try await fixture.token.answer(transaction, with: .hold)
  #expect(try await fixture.settled(transaction).hasPrefix("approved, receipt "))
  #expect(try await fixture.portal.finalResult(of: transaction).isAuthenticated)
  #expect(fixture.server.logged("transaction \(transaction): authenticated") == 1)
}
