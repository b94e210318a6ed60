// SPDX-License-Identifier: Apache-2.0
import ProgramHarness
import Testing

extension EndToEnd {
  @Suite struct Answers {
    @Test func aHoldApprovesAndThePortalIsCalledBack() async throws {
      let sink = try CallbackSink()
      defer { sink.close() }
      try await withScene(board: nil) { scene in
        let callback = sink.address + "/finished"
        let transaction = try await scene.ask(callback: callback)
        #expect(try await scene.portal.result(of: transaction).isAuthenticated == false)
        try await scene.token.shows("confirmation wanted")

        try await scene.token.answer(transaction, with: .hold)

        #expect(try await scene.settled(transaction).hasPrefix("approved, receipt "))
        let result = try await scene.portal.finalResult(of: transaction)
        #expect(result.isAuthenticated)
        #expect(result.reason == nil)
        let call = try await sink.firstCall()
        #expect(call.path == "/finished")
        #expect(call.members == ["callback_uri": callback, "transaction_id": transaction])
        try await scene.token.shows("idle, connected")
        let kinds = try await scene.token.audit(of: transaction).map(\.kind)
        #expect(kinds == ["announced", "opened", "decided", "settled"])
      }
    }

    @Test(arguments: [(Act.double, "declined"), (.notMe, "not_me")])
    func aRefusalIsNotAccepted(act: Act, reason: String) async throws {
      try await withScene(board: nil) { scene in
        let transaction = try await scene.ask()
        try await scene.token.answer(transaction, with: act)

        let inWords = reason.replacing("_", with: "-")
        #expect(try await scene.settled(transaction).hasPrefix("denied (\(inWords)), receipt "))
        let result = try await scene.portal.finalResult(of: transaction)
        #expect(!result.isAuthenticated)
        #expect(result.reason == "not_accepted")
        let listed = try await scene.server.transaction(transaction)
        #expect(listed.state == "rejected")
        #expect(listed.denialReason == reason)
        #expect(scene.server.logged("transaction \(transaction): rejected (\(reason))") == 1)
      }
    }
  }
}
