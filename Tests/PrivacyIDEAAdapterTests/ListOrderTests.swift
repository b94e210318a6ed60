// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import Synchronization
import Testing

@testable import MobileAuth
@testable import PrivacyIDEAAdapter

/// Lists that several tasks read: the rounds, the listener, and the query of a request's outcome.
@Suite("Lists of challenges that are read at the same time", .timeLimit(.minutes(5))) struct ListOrderTests {
  private let fixture: PrivacyIDEAFixture
  private let account = AccountID("account 0")

  init() throws { fixture = try PrivacyIDEAFixture() }

  /// Starts a login, and reads the list that has it by a query.
  private func listByQuery() async throws -> TransactionID {
    let transaction = fixture.token.challenges.transaction(serial: "PIPU0", nonce: fixture.server.challenge("PIPU0"))
    let status = try await fixture.token.status(of: transaction, account: account)
    #expect(status == RemoteStatus(state: .open))
    return transaction
  }

  /// Fails if the list that comes last counts.
  @Test("A list that comes after a newer one ends no challenge of the newer one") func lateList() async throws {
    let (token, gate) = (fixture.token, fixture.http.holdNext())
    let late = Task { try await token.pendingRequests() }
    try await eventually("a poll") { fixture.server.state.withLock { $0.polls.count } == 1 }
    let transaction = try await listByQuery()
    gate.open()
    let listed = try await late.finished()
    #expect(listed.map(\.transaction) == [transaction])
    #expect(token.challenges.entry(transaction) != nil)
  }

  /// Fails if the round after the query, whose list is the same, finds nothing new: the login would not be shown.
  @Test("A challenge that a query has listed first causes a hint") func listedByQuery() async throws {
    let changes = Mutex(0)
    let collector = Task {
      for try await hint in fixture.token.hints() where hint == .pendingChanged { changes.withLock { $0 += 1 } }
    }
    defer { collector.cancel() }
    try await eventually("poll 1") { fixture.server.state.withLock { $0.polls.count } == 1 }
    await fixture.clock.untilAsleep()
    _ = try await listByQuery()
    fixture.clock.advance(by: .seconds(4))
    try await eventually("a hint") { changes.withLock { $0 } == 1 }
    #expect(fixture.server.state.withLock { $0.polls.count } == 3)
  }
}
