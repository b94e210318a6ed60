// SPDX-License-Identifier: Apache-2.0
import NIOCore
import NIOEmbedded
import NIOHTTP1
import NIOPosix
import Testing

@testable import ReferenceServer
@testable import TokenServerCore
@testable import TokenServerStore

/// How callbacks share connections.
@Suite(.timeLimit(.minutes(5)), .mayBlock) struct CallbackReuseTests {
  private static let kept = "HTTP/1.1 204 No Content\r\n\r\n"

  /// Sends callbacks one after the other; on a busy machine, where one may time out, up to three times.
  /// - Returns: the numbers of connections and of requests that the portal has seen.
  private func deliver(
    _ count: Int = 3, to hosts: [String] = ["127.0.0.1"], responses: Int = .max, response: String = kept
  ) async throws -> (connections: Int, requests: Int) {
    for _ in 1...3 {
      let (outcomes, seen) = try await deliverOnce(count, to: hosts, responses: responses, response: response)
      if outcomes.contains(.failed("\(CallbackConnection.TimeoutError())")) { continue }
      #expect(outcomes.allSatisfy { $0 == .delivered }, "\(outcomes)")
      return seen
    }
    throw CallbackConnection.TimeoutError()
  }

  private func deliverOnce(
    _ count: Int, to hosts: [String], responses: Int, response: String
  ) async throws -> ([CallbackDelivery.Outcome], (connections: Int, requests: Int)) {
    let portal = try CallbackListener(answering: true, responses: responses, response: response)
    defer { portal.end() }
    let temporary = try TemporaryStore()
    try await temporary.store.write { database in
      for number in 0..<count {
        let url = "http://\(hosts[number % hosts.count]):\(portal.port)/\(number)"
        try database.insertCallback("\(number)", url: url, of: "portal", dueAt: Timestamp(1))
      }
    }
    // One event loop: connections are not shared between event loops.
    let delivery = CallbackDelivery(
      configured: [], allowed: [try #require(AddressRange("127.0.0.0/8"))],
      eventLoopGroup: MultiThreadedEventLoopGroup.singleton.next())
    var outcomes: [CallbackDelivery.Outcome] = []
    for job in try await temporary.store.read({ try $0.callbacks(dueBy: Timestamp(1), without: [], limit: count) }) {
      outcomes.append(await delivery.deliver(job))
    }
    return (outcomes, (connections: portal.connections, requests: portal.count))
  }

  @Test("Callbacks to one host and port use one connection") func reuse() async throws {
    #expect(try await deliver() == (1, 3))
  }

  /// A certificate is verified for one name only.
  @Test("Callbacks to two names at one address use two connections") func names() async throws {
    #expect(try await deliver(4, to: ["127.0.0.1", "localhost"]) == (2, 4))
  }

  @Test(
    "A connection is not used again if the portal does not want it, or its response does not end",
    arguments: [
      "HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n", "HTTP/1.0 204 No Content\r\n\r\n",
      "HTTP/1.1 200 OK\r\nContent-Length: 99999\r\n\r\n" + String(repeating: "x", count: 20_000),
    ])
  func closed(response: String) async throws {
    #expect(try await deliver(response: response) == (3, 3))
  }

  /// The portal has accepted it: sent again, it would be there twice.
  @Test("A callback is delivered whose response begins in time and does not end") func endlessResponse() async throws {
    let channel = EmbeddedChannel(handler: CallbackExchange())
    for isBegun in [true, false] {
      let reply = channel.eventLoop.makePromise(of: CallbackRequest.Reply.self)
      let head = HTTPRequestHead(version: .http1_1, method: .POST, uri: "/")
      try channel.writeOutbound(CallbackRequest(head: head, body: ByteBuffer(), reply: reply))
      if isBegun { try channel.writeInbound(HTTPClientResponsePart.head(.init(version: .http1_1, status: .accepted))) }
      try await channel.triggerUserOutboundEvent(CallbackExchange.Deadline()).get()
      reply.fail(CallbackConnection.TimeoutError())
      let result = try? await reply.futureResult.get()
      #expect(result?.status == (isBegun ? 202 : nil) && result?.isReusable != true)
    }
    _ = try? channel.finish()
  }

  /// TLS waits for the portal's close_notify.
  private final class SlowlyClosedSocket: ChannelOutboundHandler {
    typealias OutboundIn = ByteBuffer

    private(set) var closes = 0
    private(set) var reads = 0

    func read(context: ChannelHandlerContext) {
      reads += 1
      context.read()
    }

    func close(context: ChannelHandlerContext, mode: CloseMode, promise: EventLoopPromise<Void>?) {
      closes += 1
      if closes == 1 { promise?.succeed(()) } else { context.close(mode: mode, promise: promise) }
    }
  }

  @Test("The connection is closed of a portal that changes to another protocol, and nothing more is read")
  func otherProtocol() throws {
    let socket = SlowlyClosedSocket()
    let channel = EmbeddedChannel(handlers: [socket] + CallbackExchange.handlers())
    let reply = channel.eventLoop.makePromise(of: CallbackRequest.Reply.self)
    let head = HTTPRequestHead(version: .http1_1, method: .POST, uri: "/")
    try channel.writeOutbound(CallbackRequest(head: head, body: ByteBuffer(), reply: reply))
    channel.read()
    #expect(socket.closes == 0 && socket.reads == 1)
    let response = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n"
    try channel.writeInbound(ByteBuffer(string: response))
    let found = try? reply.futureResult.wait()
    #expect(found?.status == nil)
    channel.read()
    #expect(socket.closes >= 1 && socket.reads == 1)
    _ = try? channel.finish()
  }

  @Test("A callback is not delivered to a portal that changes to another protocol") func notDelivered() async throws {
    let response = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n"
    let (outcomes, seen) = try await deliverOnce(2, to: ["127.0.0.1"], responses: .max, response: response)
    #expect(outcomes.allSatisfy { $0 != .delivered } && seen.connections == 2, "\(outcomes)")
  }

  /// The second request reaches the portal on the first connection, is not answered, and is sent again.
  @Test("A callback whose connection the portal has given up is sent on a new one") func retry() async throws {
    #expect(try await deliver(2, responses: 1) == (2, 3))
  }

  @Test("A new connection that is closed without a response is not tried again") func noRetry() async throws {
    let portal = try CallbackListener(answering: true, responses: 0)
    defer { portal.end() }
    let temporary = try TemporaryStore()
    try await temporary.store.write {
      try $0.insertCallback("t", url: "http://127.0.0.1:\(portal.port)/", of: "portal", dueAt: Timestamp(1))
    }
    let job = try #require(
      try await temporary.store.read { try $0.callbacks(dueBy: Timestamp(1), without: [], limit: 1) }.first)
    let outcome = await CallbackDelivery(allowing: ["127.0.0.1"]).deliver(job)
    #expect(outcome == .failed("the connection ended without an answer"))
    #expect(portal.connections == 1 && portal.count == 1)
  }
}

/// A pool and connections on an event loop of the thread that makes it.
private struct PoolFixture {
  let pool = CallbackPool()
  let loop = EmbeddedEventLoop()

  func key(_ url: String = "https://portal.example/a", at address: String = "192.0.2.1") throws
    -> CallbackPool.Key
  {
    CallbackPool.Key(
      try CallbackURL(parsing: url), at: try SocketAddress(ipAddress: address, port: 443), on: loop)
  }

  func connection() throws -> CallbackPool.Connection {
    let channel = EmbeddedChannel(loop: loop)
    try channel.connect(to: SocketAddress(ipAddress: "192.0.2.1", port: 443)).wait()
    return CallbackPool.Connection(channel: channel, openedAt: loop.now)
  }

  func isTaken(_ key: CallbackPool.Key) -> Bool { pool.take(key, at: loop.now) != nil }
}

@Suite(.timeLimit(.minutes(1)), .mayBlock) struct CallbackPoolTests {
  /// Fails if a name whose address has changed keeps the old one, or if a plain connection is used for TLS.
  @Test("A connection is for one scheme, host, port and address") func keys() throws {
    let fixture = PoolFixture()
    fixture.pool.put(try fixture.connection(), for: try fixture.key())
    #expect(try !fixture.isTaken(fixture.key(at: "192.0.2.2")))
    #expect(try !fixture.isTaken(fixture.key("http://portal.example:443/a")))
    #expect(try !fixture.isTaken(fixture.key("https://portal.example:444/a")))
    #expect(try !fixture.isTaken(fixture.key("https://other.example/a")))
    #expect(try fixture.isTaken(fixture.key("https://PORTAL.example:443/b?c")))
    #expect(try !fixture.isTaken(fixture.key()))
  }

  @Test("A connection waits for 10 s, and is not used again after 60 s") func times() throws {
    let fixture = PoolFixture()
    let (idle, old) = (try fixture.connection(), try fixture.connection())
    fixture.pool.put(idle, for: try fixture.key())
    fixture.loop.advanceTime(by: .seconds(9))
    #expect(idle.channel.isActive)
    fixture.loop.advanceTime(by: .seconds(1))
    #expect(!idle.channel.isActive)
    #expect(try !fixture.isTaken(fixture.key()))
    for _ in 0..<5 {
      fixture.pool.put(old, for: try fixture.key())
      fixture.loop.advanceTime(by: .seconds(9))
      #expect(try fixture.isTaken(fixture.key()))
    }
    fixture.pool.put(old, for: try fixture.key())
    fixture.loop.advanceTime(by: .seconds(5))
    #expect(try !fixture.isTaken(fixture.key()))
    fixture.pool.put(old, for: try fixture.key())
    #expect(!old.channel.isActive)
  }

  @Test("A connection that the portal has closed is not used") func closed() throws {
    let fixture = PoolFixture()
    let closed = try fixture.connection()
    fixture.pool.put(closed, for: try fixture.key())
    closed.close()
    #expect(try !fixture.isTaken(fixture.key()))
  }

  @Test("The number of waiting connections is limited") func limit() throws {
    let fixture = PoolFixture()
    let connections = try (0..<200).map { _ in try fixture.connection() }
    for connection in connections { fixture.pool.put(connection, for: try fixture.key()) }
    #expect(connections.map { $0.channel.isActive } == (0..<200).map { $0 >= 72 })
  }
}
