// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import MobileAuth
import Testing

@Suite(.timeLimit(.minutes(5))) struct InboxTests {
  private func order(_ world: World) -> [TransactionID] { world.inbox.requests.map(\.transaction) }

  @Test("A server's timestamp does not make its request the newest") func timestampsDecideNoOrder() {
    let world = World()
    world.announce(world.request(1, sentAt: .max))
    world.announceElsewhere(world.request(2, of: world.otherServer, sentAt: 1))
    #expect(order(world) == [2, 1].map(World.transaction))
  }

  @Test("Requests of one list keep the list's order, and requests of later lists come first")
  func listOrderThenFirstSeen() {
    let world = World()
    let first = [3, 1, 2].map { world.request($0, sentAt: Int64($0)) }
    world.inbox.replace(requestsOf: world.server.id, with: first)
    #expect(order(world) == [3, 1, 2].map(World.transaction))
    // Neither another order of the same list nor a reload of the accounts changes the order.
    world.inbox.replace(requestsOf: world.server.id, with: first.reversed() + [world.request(4)])
    #expect(order(world) == [4, 3, 1, 2].map(World.transaction))
    world.inbox.forget(world.server.id)
    world.inbox.replace(requestsOf: world.server.id, with: first.reversed())
    #expect(order(world) == [3, 1, 2].map(World.transaction))
  }

  @Test("Only the newest 200 requests of a list are read") func longListIsCapped() {
    let world = World()
    world.inbox.replace(requestsOf: world.server.id, with: (1...500).map { world.request($0) })
    #expect(order(world) == (1...Inbox.longestList).map(World.transaction))
    #expect(Inbox.longestList == 200)
  }

  @Test("A list of any length restores no ended request, neither the server's own nor another's")
  func endingsOutliveALyingList() {
    let world = World()
    let request = world.request(1)
    world.announce(request)
    world.inbox.finish(request)
    for number in 1...Inbox.longestList {
      let other = world.request(1000 + number)
      world.inbox.replace(requestsOf: world.server.id, with: [other])
      world.inbox.finish(other)
    }
    for number in 1...3000 { world.inbox.finish(world.request(10_000 + number, of: world.otherServer)) }
    world.announce(request)
    #expect(world.inbox.requests.isEmpty)
  }

  @Test func anExpiredRequestIsGoneAndADeadlineNeverMovesAway() {
    let world = World()
    world.announce(world.request(1, lives: .seconds(5)))
    world.announce(world.request(1, lives: .seconds(500)))
    world.timekeeper.advance(by: .seconds(5))
    #expect(world.inbox.requests.isEmpty)
  }

  @Test func oneServerCannotTakeAnothersTransaction() {
    let world = World()
    world.announce(world.request(1))
    var stolen = world.request(1)
    stolen.server = TokenServerID("liar.example")
    world.inbox.replace(requestsOf: stolen.server, with: [stolen])
    #expect(world.inbox.requests.map(\.server) == [world.server.id])
  }

  @Test func whatIsFinishedStaysFinished() {
    let world = World()
    let request = world.request(1)
    world.announce(request)
    world.inbox.finish(request)
    world.announce(request)
    #expect(world.inbox.requests.isEmpty)
  }

  @Test(arguments: [
    "", "1", "00000000-0000-4000-8000-00000000000", "00000000-0000-4000-8000-00000000000g",
    "../../../etc/passwd", "00000000-0000-4000-8000-0000000000011",
  ])
  func onlyAUUIDIsATransaction(text: String) {
    #expect(TransactionID(text) == nil)
  }
}
