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
      request_expires_in = 30
      """

    private static let lone = """
      [[type]]
      name = "lone"
      method = "push"
      request_expires_in = 600
      supersede = true
      """

    @Test("An expired request cannot be approved any more") func anExpiredRequestCannotBeApprovedAnyMore() async throws
    {
      try await withScene(types: Self.brief) { fixture in
        let transaction = try await fixture.ask(type: "brief")
        #expect(try await fixture.settled(transaction) == "expired")
        try await fixture.token.shows("idle, connected")
        try await expectNoApproval(of: transaction, afterALateHoldIn: fixture)
        #expect(try await fixture.server.transaction(transaction).state == "expired")
      }
    }

    @Test("A request that expires under the thumb is not approved") func aRequestThatExpiresUnderTheThumbIsNotApproved()
      async throws
    {
      try await withScene(types: Self.brief) { fixture in
        let transaction = try await fixture.ask(type: "brief")
        try await fixture.token.asks("confirmation wanted")
        async let hold: Void = fixture.token.hold(seconds: 32)
        try await fixture.token.shows("held long enough: release to accept")
        #expect(try await fixture.settled(transaction) == "expired")
        try await hold
        try await expectNoApproval(of: transaction, afterALateHoldIn: fixture)
      }
    }

    @Test("A request that the portal withdrew is gone") func aRequestThatThePortalWithdrewIsGone() async throws {
      try await withScene { fixture in
        let transaction = try await fixture.ask()
        try await fixture.token.shows("confirmation wanted")
        #expect(try await fixture.portal.cancel(transaction) == 204)
        #expect(try await fixture.settled(transaction) == "cancelled")
        try await fixture.token.shows("idle, connected")
        try await expectNoApproval(of: transaction, afterALateHoldIn: fixture)
      }
    }

    @Test("A newer request of a lone type takes the olders place") func aNewerRequestOfALoneTypeTakesTheOldersPlace()
      async throws
    {
      try await withScene(types: Self.lone) { fixture in
        let older = try await fixture.ask(type: "lone")
        try await fixture.token.log.line(with: "opened request \(older)")
        let newer = try await fixture.ask(type: "lone")
        #expect(try await fixture.settled(older) == "superseded")
        try await fixture.token.answer(newer, with: .hold)
        #expect(try await fixture.settled(newer).hasPrefix("approved, receipt "))
        #expect(try await fixture.portal.finalResult(of: newer).isAuthenticated)
        #expect(try await fixture.portal.result(of: older).isAuthenticated == false)
      }
    }

    @Test("A hold answers the newest and the older one comes back") func aHoldAnswersTheNewestAndTheOlderOneComesBack()
      async throws
    {
      try await withScene { fixture in
        let older = try await fixture.ask()
        try await fixture.token.log.line(with: "opened request \(older)")
        let newer = try await fixture.ask(type: "payment")
        try await fixture.token.log.line(with: "opened request \(newer)")
        let mark = try fixture.token.log.mark
        #expect(try await fixture.token.pending() == [newer, older])

        try await fixture.token.answer(newer, with: .hold)
        #expect(try await fixture.portal.finalResult(of: newer).isAuthenticated)
        #expect(try await fixture.portal.result(of: older).isAuthenticated == false)

        try await fixture.token.answer(older, with: .double, from: mark)
        let result = try await fixture.portal.finalResult(of: older)
        #expect(!result.isAuthenticated)
        #expect(result.reason == "not_accepted")
        #expect(try await fixture.settled(older).hasPrefix("denied"))
      }
    }
  }
}

private func expectNoApproval(of transaction: String, afterALateHoldIn fixture: EndToEndFixture) async throws {
  try await fixture.token.perform(.hold)
  #expect(try await fixture.portal.result(of: transaction).isAuthenticated == false)
  #expect(try await fixture.token.audit(of: transaction).filter { $0.kind == "decided" }.isEmpty)
  #expect(fixture.server.logged("transaction \(transaction): authenticated") == 0)
}
