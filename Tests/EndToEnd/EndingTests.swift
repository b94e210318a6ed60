// SPDX-License-Identifier: Apache-2.0
import ProgramHarness
import Testing

extension EndToEnd {
  /// Requests that end without this token's answer.
  @Suite struct Endings {
    private static let brief = """
      [[type]]
      name = "brief"
      method = "push"
      request_expires_in = 10
      """

    private static let lone = """
      [[type]]
      name = "lone"
      method = "push"
      supersede = true
      """

    @Test func anExpiredRequestCannotBeApprovedAnyMore() async throws {
      try await withScene(types: Self.brief) { scene in
        let transaction = try await scene.ask(type: "brief")
        #expect(try await scene.settled(transaction) == "expired")
        try await scene.token.shows("idle, connected")
        try await expectNoApproval(of: transaction, afterALateHoldIn: scene)
        #expect(try await scene.server.transaction(transaction).state == "expired")
      }
    }

    @Test func aRequestThatExpiresUnderTheThumbIsNotApproved() async throws {
      try await withScene(types: Self.brief) { scene in
        let transaction = try await scene.ask(type: "brief")
        try await scene.token.asks("confirmation wanted")
        async let hold: Void = scene.token.hold(seconds: 12)
        try await scene.token.shows("held long enough: release to accept")
        #expect(try await scene.settled(transaction) == "expired")
        try await hold
        try await expectNoApproval(of: transaction, afterALateHoldIn: scene)
      }
    }

    @Test func aRequestThatThePortalWithdrewIsGone() async throws {
      try await withScene { scene in
        let transaction = try await scene.ask()
        try await scene.token.shows("confirmation wanted")
        #expect(try await scene.portal.cancel(transaction) == 204)
        #expect(try await scene.settled(transaction) == "cancelled")
        try await scene.token.shows("idle, connected")
        try await expectNoApproval(of: transaction, afterALateHoldIn: scene)
      }
    }

    @Test func aNewerRequestOfALoneTypeTakesTheOldersPlace() async throws {
      try await withScene(types: Self.lone) { scene in
        let older = try await scene.ask(type: "lone")
        try await scene.token.log.line(with: "opened request \(older)")
        let newer = try await scene.ask(type: "lone")
        #expect(try await scene.settled(older) == "superseded")
        try await scene.token.answer(newer, with: .hold)
        #expect(try await scene.settled(newer).hasPrefix("approved, receipt "))
        #expect(try await scene.portal.finalResult(of: newer).isAuthenticated)
        #expect(try await scene.portal.result(of: older).isAuthenticated == false)
      }
    }

    @Test func aHoldAnswersTheNewestAndTheOlderOneComesBack() async throws {
      try await withScene { scene in
        let older = try await scene.ask()
        try await scene.token.log.line(with: "opened request \(older)")
        let newer = try await scene.ask(type: "payment")
        try await scene.token.log.line(with: "opened request \(newer)")
        let mark = try scene.token.log.mark
        #expect(try await scene.token.pending() == [newer, older])

        try await scene.token.answer(newer, with: .hold)
        #expect(try await scene.portal.finalResult(of: newer).isAuthenticated)
        #expect(try await scene.portal.result(of: older).isAuthenticated == false)

        try await scene.token.answer(older, with: .double, from: mark)
        let result = try await scene.portal.finalResult(of: older)
        #expect(!result.isAuthenticated)
        #expect(result.reason == "not_accepted")
        #expect(try await scene.settled(older).hasPrefix("denied"))
      }
    }
  }
}

private func expectNoApproval(of transaction: String, afterALateHoldIn scene: Scene) async throws {
  try await scene.token.perform(.hold)
  #expect(try await scene.portal.result(of: transaction).isAuthenticated == false)
  #expect(try await scene.token.audit(of: transaction).filter { $0.kind == "decided" }.isEmpty)
  #expect(scene.server.logged("transaction \(transaction): authenticated") == 0)
}
