// SPDX-License-Identifier: Apache-2.0
import HTTPTypes
import NIOCore
import NIOEmbedded
import NIOHTTPTypes
import Testing

@testable import TokenServerCore
@testable import TokenServerHTTP

/// A connection on an event loop of the thread that makes it.
private struct GuardedConnection {
  let channel: EmbeddedChannel

  init() throws {
    let table = ConnectionTable(limit: 9, limitPerSource: 9)
    channel = EmbeddedChannel(handler: ConnectionGuard(table: table, limits: ServerConfiguration.Limits()))
    try channel.connect(to: SocketAddress(ipAddress: "192.0.2.1", port: 1)).wait()
  }

  func request() throws {
    try channel.writeInbound(
      HTTPRequestPart.head(HTTPRequest(method: .get, scheme: "https", authority: "a", path: "/")))
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

/// The deadlines of one connection: 30 s for a request, 60 s between requests.
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
    try connection.channel.triggerUserOutboundEvent(ConnectionGuard.Event.beginsStream).wait()
    connection.channel.embeddedEventLoop.advanceTime(by: .hours(1))
    #expect(connection.channel.isActive)
    try connection.respond()
    #expect(connection.ends(after: 60))
  }
}
