// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import Testing

@testable import MobileAuth

@Suite(.timeLimit(.minutes(5))) struct InboxTests {
  private func order(_ fixture: HandlerFixture) -> [TransactionID] { fixture.inbox.pending.all.map(\.transaction) }

  @Test("A server's timestamp does not make its request the newest") func timestampsDecideNoOrder() {
    let fixture = HandlerFixture()
    fixture.announce(fixture.request(1, sentAt: .max))
    fixture.announceElsewhere(fixture.request(2, of: fixture.otherServer, sentAt: 1))
    #expect(order(fixture) == [2, 1].map(HandlerFixture.transaction))
  }

  @Test("Requests of one list keep the list's order, and requests of later lists come first")
  func listOrderThenFirstSeen() {
    let fixture = HandlerFixture()
    let first = [3, 1, 2].map { fixture.request($0, sentAt: Int64($0)) }
    fixture.inbox.replace(requestsOf: fixture.server.id, with: first)
    #expect(order(fixture) == [3, 1, 2].map(HandlerFixture.transaction))
    // Neither another order of the same list nor a reload of the accounts changes the order.
    fixture.inbox.replace(requestsOf: fixture.server.id, with: first.reversed() + [fixture.request(4)])
    #expect(order(fixture) == [4, 3, 1, 2].map(HandlerFixture.transaction))
    fixture.inbox.forget(fixture.server.id)
    fixture.inbox.replace(requestsOf: fixture.server.id, with: first.reversed())
    #expect(order(fixture) == [3, 1, 2].map(HandlerFixture.transaction))
  }

  /// Fails if only a look at the list notices the expiry: the log would say nothing until the next change.
  @Test("Requests that expire before they are announced are counted by server, without a look at the list")
  func expiredAreCounted() {
    let fixture = HandlerFixture()
    fixture.announce(fixture.request(1), fixture.request(2))
    fixture.announceElsewhere(fixture.request(3, of: fixture.otherServer))
    fixture.clock.advance(by: .seconds(60))
    #expect(fixture.inbox.pending.takeExpiredUnannounced() == [fixture.server.id: 2, fixture.otherServer.id: 1])
    #expect(fixture.inbox.pending.takeExpiredUnannounced().isEmpty)
  }

  @Test("Only the newest 200 requests of a list are read") func longListIsCapped() {
    let fixture = HandlerFixture()
    fixture.inbox.replace(requestsOf: fixture.server.id, with: (1...500).map { fixture.request($0) })
    #expect(order(fixture) == (1...PendingRequests.longestList).map(HandlerFixture.transaction))
    #expect(PendingRequests.longestList == 200)
  }

  @Test("A list of any length restores no ended request, neither the server's own nor another's")
  func endingsOutliveALyingList() {
    let fixture = HandlerFixture()
    let request = fixture.request(1)
    fixture.announce(request)
    fixture.inbox.finish(request)
    for number in 1...PendingRequests.longestList {
      let other = fixture.request(1000 + number)
      fixture.inbox.replace(requestsOf: fixture.server.id, with: [other])
      fixture.inbox.finish(other)
    }
    for number in 1...3000 { fixture.inbox.finish(fixture.request(10_000 + number, of: fixture.otherServer)) }
    fixture.announce(request)
    #expect(fixture.inbox.pending.all.isEmpty)
  }

  @Test("An expired request is gone and a deadline never moves away")
  func anExpiredRequestIsGoneAndADeadlineNeverMovesAway() {
    let fixture = HandlerFixture()
    fixture.announce(fixture.request(1, lives: .seconds(5)))
    fixture.announce(fixture.request(1, lives: .seconds(500)))
    fixture.clock.advance(by: .seconds(5))
    #expect(fixture.inbox.pending.all.isEmpty)
  }

  @Test("One server cannot take anothers transaction") func oneServerCannotTakeAnothersTransaction() {
    let fixture = HandlerFixture()
    fixture.announce(fixture.request(1))
    var stolen = fixture.request(1)
    stolen.server = TokenServerID("liar.example")
    fixture.inbox.replace(requestsOf: stolen.server, with: [stolen])
    #expect(fixture.inbox.pending.all.map(\.server) == [fixture.server.id])
  }

  @Test("What is finished stays finished") func whatIsFinishedStaysFinished() {
    let fixture = HandlerFixture()
    let request = fixture.request(1)
    fixture.announce(request)
    fixture.inbox.finish(request)
    fixture.announce(request)
    #expect(fixture.inbox.pending.all.isEmpty)
  }

  @Test(
    "Only a UUID is a transaction",
    arguments: [
      "", "1", "00000000-0000-4000-8000-00000000000", "00000000-0000-4000-8000-00000000000g",
      "../../../etc/passwd", "00000000-0000-4000-8000-0000000000011",
    ])
  func onlyAUUIDIsATransaction(text: String) {
    #expect(TransactionID(text) == nil)
  }
}
