// SPDX-License-Identifier: Apache-2.0
import NIOCore
import NIOEmbedded
import NIOHTTP1
import Testing

@testable import TokenServerHTTP

@Suite(.timeLimit(.minutes(1)), .mayBlock) struct FramingHandlerTests {
  /// Answers each request as soon as its head is there.
  private final class EarlyServer: ChannelInboundHandler {
    typealias InboundIn = HTTPServerRequestPart
    typealias OutboundOut = HTTPServerResponsePart

    private(set) var uris: [String] = []

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
      guard case .head(let head) = unwrapInboundIn(data) else { return }
      uris.append(head.uri)
      context.write(wrapOutboundOut(.head(HTTPResponseHead(version: .http1_1, status: .notFound))), promise: nil)
      context.writeAndFlush(wrapOutboundOut(.end(nil)), promise: nil)
    }
  }

  /// A socket whose output can be closed alone, which an embedded channel does not have.
  private final class HalfClosedSocket: ChannelOutboundHandler {
    typealias OutboundIn = HTTPServerResponsePart
    typealias OutboundOut = HTTPServerResponsePart

    private(set) var reads = 0

    func read(context: ChannelHandlerContext) {
      reads += 1
      context.read()
    }

    func close(context: ChannelHandlerContext, mode: CloseMode, promise: EventLoopPromise<Void>?) {
      if mode == .output { promise?.succeed(()) } else { context.close(mode: mode, promise: promise) }
    }
  }

  @Test(
    "There is no request after one of HTTP/1.0, also if that is answered before its body",
    arguments: [(HTTPVersion.http1_0, ["/a"]), (.http1_1, ["/a", "/b"])])
  func answeredEarly(version: HTTPVersion, uris: [String]) throws {
    let server = EarlyServer()
    let channel = EmbeddedChannel()
    try channel.pipeline.syncOperations.addHandlers(
      [HalfClosedSocket(), FramingHandler(largestBody: 1024, readiness: Readiness()), server] as [any ChannelHandler])
    for uri in ["/a", "/b"] {
      let head = HTTPRequestHead(version: version, method: .POST, uri: uri, headers: ["Host": "h"])
      try channel.writeInbound(HTTPServerRequestPart.head(head))
      try channel.writeInbound(HTTPServerRequestPart.body(ByteBuffer(string: "abc")))
      try channel.writeInbound(HTTPServerRequestPart.end(nil))
    }
    #expect(server.uris == uris)
    _ = try channel.finish()
  }

  /// The encoder would write a chunk at the end of a response without a length.
  @Test("A response to HEAD has a length, and its connection goes on") func head() throws {
    let server = EarlyServer()
    let channel = EmbeddedChannel()
    try channel.pipeline.syncOperations.addHandlers(
      [HalfClosedSocket(), FramingHandler(largestBody: 1024, readiness: Readiness()), server] as [any ChannelHandler])
    for (method, uri) in [(HTTPMethod.HEAD, "/a"), (.GET, "/b")] {
      let head = HTTPRequestHead(version: .http1_1, method: method, uri: uri, headers: ["Host": "h"])
      try channel.writeInbound(HTTPServerRequestPart.head(head))
      try channel.writeInbound(HTTPServerRequestPart.end(nil))
    }
    var lengths: [[String]] = []
    while let part = try channel.readOutbound(as: HTTPServerResponsePart.self) {
      if case .head(let head) = part { lengths.append(head.headers["content-length"]) }
    }
    #expect(server.uris == ["/a", "/b"] && lengths == [["0"], []])
    _ = try channel.finish()
  }

  @Test("While the server drains, a response says that it is the last one, and no request follows it")
  func draining() throws {
    let (server, readiness) = (EarlyServer(), Readiness())
    let channel = EmbeddedChannel()
    try channel.pipeline.syncOperations.addHandlers(
      [HalfClosedSocket(), FramingHandler(largestBody: 1024, readiness: readiness), server] as [any ChannelHandler])
    func connection(of uri: String) throws -> [String]? {
      let head = HTTPRequestHead(version: .http1_1, method: .GET, uri: uri, headers: ["Host": "h"])
      try channel.writeInbound(HTTPServerRequestPart.head(head))
      try channel.writeInbound(HTTPServerRequestPart.end(nil))
      var found: [String]?
      while let part = try channel.readOutbound(as: HTTPServerResponsePart.self) {
        if case .head(let head) = part { found = head.headers["connection"] }
      }
      return found
    }
    #expect(try connection(of: "/a") == [])
    readiness.drain()
    #expect(try connection(of: "/b") == ["close"])
    #expect(try connection(of: "/c") == nil)
    #expect(server.uris == ["/a", "/b"])
    _ = try channel.finish()
  }
  private static let otherProtocols: [HTTPRequestHead] = [
    HTTPRequestHead(version: .http1_1, method: .CONNECT, uri: "h:443", headers: ["Host": "h"]),
    HTTPRequestHead(
      version: .http1_1, method: .GET, uri: "/a", headers: ["Host": "h", "Connection": "Upgrade", "Upgrade": "x"]),
    HTTPRequestHead(
      version: .http1_1, method: .GET, uri: "/a",
      headers: ["Host": "h", "proxy-connection": "upgrade", "upgrade": ""]),
    // Refused.
    HTTPRequestHead(version: .http1_1, method: .GET, uri: "/a", headers: ["Connection": "upgrade", "UPGRADE": "x"]),
  ]

  /// The parser keeps all bytes that follow.
  @Test("Nothing is read after a request for another protocol, which is the last one", arguments: otherProtocols)
  func otherProtocol(head: HTTPRequestHead) throws {
    let (socket, server) = (HalfClosedSocket(), EarlyServer())
    let channel = EmbeddedChannel()
    try channel.pipeline.syncOperations.addHandlers(
      [socket, FramingHandler(largestBody: 1024, readiness: Readiness()), server] as [any ChannelHandler])
    try channel.writeInbound(HTTPServerRequestPart.head(head))
    channel.read()
    #expect(socket.reads == 1)
    try channel.writeInbound(HTTPServerRequestPart.end(nil))
    channel.read()
    #expect(socket.reads == 1)
    var connections: [[String]] = []
    while let part = try channel.readOutbound(as: HTTPServerResponsePart.self) {
      if case .head(let head) = part { connections.append(head.headers["connection"]) }
    }
    #expect(connections == [["close"]])
    _ = try channel.finish()
  }

  @Test("Nothing is read after a request for another protocol that is ignored") func ignoredOtherProtocol() throws {
    let (socket, server) = (HalfClosedSocket(), EarlyServer())
    let channel = EmbeddedChannel()
    try channel.pipeline.syncOperations.addHandlers(
      [socket, FramingHandler(largestBody: 1024, readiness: Readiness()), server] as [any ChannelHandler])
    let last = HTTPRequestHead(
      version: .http1_1, method: .GET, uri: "/a", headers: ["Host": "h", "Connection": "close"])
    for head in [last, Self.otherProtocols[1]] {
      try channel.writeInbound(HTTPServerRequestPart.head(head))
      try channel.writeInbound(HTTPServerRequestPart.end(nil))
      channel.read()
      #expect(socket.reads == 1)
    }
    #expect(server.uris == ["/a"])
    _ = try channel.finish()
  }

  /// Handles requests without an answer.
  private final class SilentServer: ChannelInboundHandler {
    typealias InboundIn = HTTPServerRequestPart

    private(set) var requests = 0

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
      if case .head = unwrapInboundIn(data) { requests += 1 }
    }
  }

  /// TLS waits for the client's close_notify.
  private final class SlowlyClosedSocket: ChannelOutboundHandler {
    typealias OutboundIn = HTTPServerResponsePart
    typealias OutboundOut = HTTPServerResponsePart

    private(set) var closes = 0

    func close(context: ChannelHandlerContext, mode: CloseMode, promise: EventLoopPromise<Void>?) {
      closes += 1
      if closes == 1 { promise?.succeed(()) } else { context.close(mode: mode, promise: promise) }
    }
  }

  @Test("A client that sends many requests without waiting for the responses loses its connection")
  func manyUnanswered() throws {
    let (socket, server) = (SlowlyClosedSocket(), SilentServer())
    let channel = EmbeddedChannel()
    try channel.pipeline.syncOperations.addHandlers(
      [socket, FramingHandler(largestBody: 1024, readiness: Readiness()), server] as [any ChannelHandler])
    let head = HTTPRequestHead(version: .http1_1, method: .GET, uri: "/a", headers: ["Host": "h"])
    for number in 1...20 {
      try channel.writeInbound(HTTPServerRequestPart.head(head))
      try channel.writeInbound(HTTPServerRequestPart.end(nil))
      #expect(socket.closes == (number > FramingHandler.mostUnanswered ? 1 : 0))
    }
    #expect(server.requests == FramingHandler.mostUnanswered)
    _ = try channel.finish()
  }
}
