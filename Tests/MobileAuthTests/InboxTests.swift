import ApprovalTestKit
import MobileAuth
import Testing

@Suite struct InboxTests {
  /// Whoever sends a message may say any time.
  @Test func whatWasBroughtIsAsOldAsItsArrival() {
    let world = World()
    var liar = world.request(1, sentAt: .max)
    liar.receivedAtMilliseconds = 1000
    var honest = world.request(2, of: world.otherServer, sentAt: 1)
    honest.receivedAtMilliseconds = 3000
    world.announce(liar)
    world.announceElsewhere(honest, world.request(3, of: world.otherServer, sentAt: 2000))
    #expect(world.inbox.requests.map(\.transaction) == [2, 3, 1].map(World.transaction))
  }

  @Test func newestFirstTiesByIdentifier() {
    let world = World()
    world.announce(
      world.request(3, sentAt: 10), world.request(1, sentAt: 20), world.request(2, sentAt: 10),
      world.request(4, sentAt: 30))
    #expect(world.inbox.requests.map(\.transaction) == [4, 1, 2, 3].map(World.transaction))
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
    world.inbox.finish(request.transaction)
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
