// SPDX-License-Identifier: Apache-2.0
import HTTPTypes
import NIOCore
import NIOEmbedded
import NIOHTTPTypes
import Testing

@testable import TokenServerCore
@testable import TokenServerHTTP

private final class LateClose: ChannelOutboundHandler {
  typealias OutboundIn = HTTPResponsePart
  private var count: Int

  init(_ count: Int) { self.count = count }

  func close(context: ChannelHandlerContext, mode: CloseMode, promise: EventLoopPromise<Void>?) {
    guard count == 0 else {
      count -= 1
      promise?.succeed()
      return
    }
    context.close(mode: mode, promise: promise)
  }
}

/// A connection on an event loop of the thread that makes it.
private struct GuardedConnection {
  let channel: EmbeddedChannel

  /// - Parameter lateCloses: how many closes have no effect, as while TLS waits for the peer's close_notify.
  init(in table: ConnectionTable = ConnectionTable(limit: 9, limitPerSource: 9), lateCloses: Int = 0) throws {
    channel = EmbeddedChannel(handlers: [
      LateClose(lateCloses), ConnectionGuard(table: table, limits: ServerConfiguration.Limits()),
    ])
    try channel.connect(to: SocketAddress(ipAddress: "192.0.2.1", port: 1)).wait()
  }

  func request() throws {
    try channel.writeInbound(
      HTTPRequestPart.head(HTTPRequest(method: .get, scheme: "https", authority: "a", path: "/")))
  }

  /// A connection for each device, after its request.
  static func kept(for devices: [String], in table: ConnectionTable) throws -> [GuardedConnection] {
    try devices.map { device in
      let connection = try GuardedConnection(in: table)
      try connection.serve(device)
      return connection
    }
  }

  /// One request of a device, and its response.
  func serve(_ device: String) throws {
    try request()
    try channel.triggerUserOutboundEvent(ConnectionGuard.Event.keep(for: device)).wait()
    try respond()
  }

  func respond() throws { try channel.writeOutbound(HTTPResponsePart.end(nil)) }

  /// Whether the connection is open just before the time, and closed just after it.
  func ends(after seconds: Int64) -> Bool {
    channel.embeddedEventLoop.advanceTime(by: .seconds(seconds) - .milliseconds(1))
    let wasOpen = channel.isActive
    channel.embeddedEventLoop.advanceTime(by: .milliseconds(2))
    return wasOpen && !channel.isActive
  }
}

/// The deadlines of one connection: 30 s for a request, 60 s between requests, 15 minutes between those of a device.
@Suite(.timeLimit(.minutes(1)), .mayBlock) struct ConnectionGuardTests {
  @Test("A connection without a request ends") func withoutRequest() throws {
    #expect(try GuardedConnection().ends(after: 30))
  }

  @Test("A request that gets no response ends the connection") func slowRequest() throws {
    let connection = try GuardedConnection()
    connection.channel.embeddedEventLoop.advanceTime(by: .seconds(20))
    try connection.request()
    #expect(connection.ends(after: 30))
  }

  @Test("An idle connection ends after the last of several responses") func idle() throws {
    let connection = try GuardedConnection()
    for _ in 0..<5 {
      try connection.request()
      try connection.respond()
      connection.channel.embeddedEventLoop.advanceTime(by: .seconds(20))
    }
    #expect(connection.ends(after: 40))
  }

  /// Fails if the timer of the idle time, which ends later, is kept.
  @Test("A request after an idle time has the deadline of requests") func requestAfterIdleTime() throws {
    let connection = try GuardedConnection()
    try connection.request()
    try connection.respond()
    connection.channel.embeddedEventLoop.advanceTime(by: .seconds(50))
    try connection.request()
    try connection.respond()
    try connection.request()
    #expect(connection.ends(after: 30))
  }

  @Test("An event stream has no deadline, and the response after it has one") func stream() throws {
    let connection = try GuardedConnection()
    try connection.request()
    try connection.channel.triggerUserOutboundEvent(ConnectionGuard.Event.beginsStream(isCounted: false)).wait()
    connection.channel.embeddedEventLoop.advanceTime(by: .hours(1))
    #expect(connection.channel.isActive)
    try connection.respond()
    #expect(connection.ends(after: 60))
  }

  @Test("The stream of a device without a user counts for its source", arguments: [true, false])
  func countedStream(isCounted: Bool) throws {
    let table = ConnectionTable(limit: 9, limitPerSource: 1)
    let connection = try GuardedConnection(in: table)
    try connection.request()
    try connection.channel.triggerUserOutboundEvent(ConnectionGuard.Event.beginsStream(isCounted: isCounted)).wait()
    let other = try GuardedConnection(in: table)
    #expect(other.channel.isActive == !isCounted)
    for connection in [connection, other] where connection.channel.isActive { try connection.channel.close().wait() }
    #expect(try GuardedConnection(in: table).channel.isActive)
  }

  /// Kept connections do not count, and a request on one is handled although its source is at its limit.
  @Test("A kept connection at the limit of its source gets no stream for a device without a user") func keptStream()
    throws
  {
    let table = ConnectionTable(limit: 9, limitPerSource: 1)
    let connection = try GuardedConnection(in: table)
    try connection.serve("a")
    let other = try GuardedConnection(in: table)
    #expect(other.channel.isActive)
    func beginStream(isCounted: Bool) throws {
      try connection.channel.triggerUserOutboundEvent(ConnectionGuard.Event.beginsStream(isCounted: isCounted)).wait()
    }
    try connection.request()
    #expect(throws: ConnectionGuard.SourceLimitError.self) { try beginStream(isCounted: true) }
    try connection.respond()
    try other.channel.close().wait()
    try connection.request()
    try beginStream(isCounted: true)
    #expect(try !GuardedConnection(in: table).channel.isActive)
    try connection.channel.close().wait()
    #expect(try GuardedConnection(in: table).channel.isActive)
  }

  // MARK: Connections of devices

  @Test("The connection of a device is kept for its next request, and has the deadline of requests then")
  func keptForADevice() throws {
    let connection = try GuardedConnection()
    try connection.serve("a")
    #expect(connection.ends(after: 900))
    let other = try GuardedConnection()
    try other.serve("a")
    other.channel.embeddedEventLoop.advanceTime(by: .seconds(800))
    try other.request()
    #expect(other.ends(after: 30))
  }

  @Test("One connection is kept for each device") func oneForEachDevice() throws {
    let table = ConnectionTable(limit: 9, limitPerSource: 9)
    let connections = try (0..<3).map { _ in try GuardedConnection(in: table) }
    for (connection, device) in zip(connections, ["a", "b", "a"]) { try connection.serve(device) }
    for connection in connections { connection.channel.embeddedEventLoop.run() }
    #expect(connections.map(\.channel.isActive) == [false, true, true] && table.total == 2)
    // The next response on the same connection keeps it again.
    try connections[2].serve("a")
    connections[2].channel.embeddedEventLoop.run()
    #expect(connections[2].channel.isActive && table.total == 2)
  }

  @Test("Kept connections do not count for their address") func notForTheirAddress() throws {
    let table = ConnectionTable(limit: 9, limitPerSource: 2)
    let connections = try GuardedConnection.kept(for: ["a", "b", "c"], in: table)
    let others = try (0..<2).map { _ in try GuardedConnection(in: table) }
    let areOpen = (connections + others).map(\.channel.isActive)
    #expect(!areOpen.contains(false))
    #expect(try !GuardedConnection(in: table).channel.isActive)
    // Handled although the address is at its limit, and kept again.
    try connections[0].request()
    try connections[0].respond()
    #expect(connections[0].ends(after: 900) && table.total == 4)
  }

  @Test("At the limit of all connections, the one that was kept longest makes room") func makesRoom() throws {
    let table = ConnectionTable(limit: 3, limitPerSource: 9)
    let connections = try GuardedConnection.kept(for: ["a", "b", "c"], in: table)
    try connections[0].serve("a")
    for _ in 0..<2 { #expect(try GuardedConnection(in: table).channel.isActive && table.total == 3) }
    for connection in connections { connection.channel.embeddedEventLoop.run() }
    #expect(connections.map(\.channel.isActive) == [true, false, false] && table.total == 3)
    #expect(try GuardedConnection(in: table).channel.isActive)
    #expect(try !GuardedConnection(in: table).channel.isActive && table.total == 3)
  }

  /// Fails if the connection is kept while a request is open: it would be counted wrong, and evicted.
  @Test("A connection with another request is not kept") func pipelined() throws {
    let table = ConnectionTable(limit: 9, limitPerSource: 9)
    let connection = try GuardedConnection(in: table)
    try connection.request()
    try connection.request()
    try connection.channel.triggerUserOutboundEvent(ConnectionGuard.Event.keep(for: "a")).wait()
    try connection.respond()
    let other = try GuardedConnection(in: table)
    try other.serve("a")
    #expect(connection.channel.isActive && table.total == 2)
    try connection.respond()
    #expect(!other.channel.isActive && table.total == 1)
    #expect(connection.ends(after: 900) && table.total == 0)
  }

  @Test("A pipelined request has the deadline of requests") func pipelinedDeadline() throws {
    let connection = try GuardedConnection()
    try connection.request()
    try connection.serve("a")
    #expect(connection.ends(after: 30))
  }

  /// Fails if the connection evicts itself: the count of those that are being closed would never be right again.
  @Test("A response without a request does not keep a connection again") func responseAlone() throws {
    let table = ConnectionTable(limit: 9, limitPerSource: 9)
    let connection = try GuardedConnection(in: table)
    try connection.serve("a")
    try connection.respond()
    #expect(connection.ends(after: 900) && table.total == 0)
  }

  @Test("A connection is not kept after a stream") func afterAStream() throws {
    let connection = try GuardedConnection()
    try connection.serve("a")
    try connection.request()
    try connection.channel.triggerUserOutboundEvent(ConnectionGuard.Event.beginsStream(isCounted: false)).wait()
    try connection.respond()
    #expect(connection.ends(after: 60))
  }

  /// Its response could not be sent, so that the client would send the request again.
  @Test("A request that comes after the place was lost is not handled") func lostPlace() throws {
    let table = ConnectionTable(limit: 1, limitPerSource: 9)
    let connection = try GuardedConnection(in: table, lateCloses: 1)
    try connection.serve("a")
    #expect(try connection.channel.readInbound(as: HTTPRequestPart.self) != nil)
    #expect(table.enter(from: "s") && connection.channel.isActive && table.total == 2)
    try connection.request()
    #expect(try connection.channel.readInbound(as: HTTPRequestPart.self) == nil)
    #expect(!connection.channel.isActive && table.total == 1)
  }
}
