// SPDX-License-Identifier: Apache-2.0
import ProgramHarness
import Testing

extension EndToEnd {
  @Suite struct Answers {
    @Test("A hold approves and the portal is called back") func aHoldApprovesAndThePortalIsCalledBack() async throws {
      let sink = try CallbackSink()
      defer { sink.close() }
      try await withScene(board: nil) { fixture in
        let callback = sink.address + "/finished"
        let transaction = try await fixture.ask(callback: callback)
        #expect(try await fixture.portal.result(of: transaction).isAuthenticated == false)
        try await fixture.token.shows("confirmation wanted")

        try await fixture.server.log.line(with: "request \(transaction) was delivered to device \(fixture.device)")

        try await fixture.token.answer(transaction, with: .hold)

        #expect(try await fixture.settled(transaction).hasPrefix("approved, receipt "))
        let result = try await fixture.portal.finalResult(of: transaction)
        #expect(result.isAuthenticated)
        #expect(result.reason == nil)
        let call = try await sink.firstCall()
        #expect(call.path == "/finished")
        #expect(call.members == ["callback_uri": callback, "transaction_id": transaction])
        try await fixture.token.shows("idle, connected")
        let kinds = try await fixture.token.audit(of: transaction).map(\.kind)
        #expect(kinds == ["announced", "opened", "decided", "settled"])
      }
    }

    @Test("A refusal is not accepted", arguments: [(UserGesture.double, "declined"), (.notMe, "not_me")])
    func aRefusalIsNotAccepted(gesture: UserGesture, reason: String) async throws {
      try await withScene(board: nil) { fixture in
        let transaction = try await fixture.ask()
        try await fixture.token.answer(transaction, with: gesture)

        let inWords = reason.replacing("_", with: "-")
        #expect(try await fixture.settled(transaction).hasPrefix("denied (\(inWords)), receipt "))
        let result = try await fixture.portal.finalResult(of: transaction)
        #expect(!result.isAuthenticated)
        #expect(result.reason == "not_accepted")
        let listed = try await fixture.server.transaction(transaction)
        #expect(listed.state == "rejected")
        #expect(listed.denialReason == reason)
        #expect(fixture.server.logged("transaction \(transaction): rejected (\(reason))") == 1)
      }
    }
  }
}
