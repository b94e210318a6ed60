// SPDX-License-Identifier: Apache-2.0
import NIOCore
import NIOEmbedded
import Testing

@testable import TokenServerCore
@testable import TokenServerHTTP

@Suite(.timeLimit(.minutes(1)), .mayBlock) struct ProxyProtocolTests {
  private static let signature: [UInt8] = [13, 10, 13, 10, 0, 13, 10, 81, 85, 73, 84, 10]

  private static func header(_ command: UInt8, _ family: UInt8, _ addresses: [UInt8], length: Int? = nil) -> [UInt8] {
    let length = length ?? addresses.count
    return signature + [command, family, UInt8(length >> 8), UInt8(length & 255)] + addresses
  }

  private static let ipv4: [UInt8] = [192, 0, 2, 1, 10, 0, 0, 1, 0, 80, 1, 187]
  private static let ipv6: [UInt8] = [0x20, 1, 0xd, 0xb8] + [UInt8](repeating: 7, count: 32)

  @Test("Headers")
  func headers() {
    func source(_ bytes: [UInt8]) -> [UInt8]?? {
      guard case .header(let header) = ProxyHeader.parse(bytes) else { return .none }
      return .some(header.source)
    }
    #expect(source(Self.header(0x21, 0x11, Self.ipv4)) == [192, 0, 2, 1])
    // With options (TLV) after the addresses.
    #expect(source(Self.header(0x21, 0x11, Self.ipv4 + [3, 0, 1, 9])) == [192, 0, 2, 1])
    #expect(source(Self.header(0x21, 0x21, Self.ipv6)) == .some(Array(Self.ipv6.prefix(16))))
    for own in [
      Self.header(0x20, 0x00, []), Self.header(0x20, 0x11, Self.ipv4), Self.header(0x21, 0x00, [1, 2]),
      Self.header(0x21, 0x31, [UInt8](repeating: 0, count: 216)),
    ] { #expect(source(own) == .some(nil)) }
  }

  @Test(
    "No header",
    arguments: [
      Self.header(0x22, 0x11, Self.ipv4), Self.header(0x11, 0x11, Self.ipv4), Self.header(0x21, 0x12, Self.ipv4),
      Self.header(0x21, 0x11, Array(Self.ipv4.dropLast())), Self.header(0x21, 0x21, Self.ipv4),
      Self.header(0x21, 0x11, Self.ipv4, length: 521), Self.header(0x21, 0x11, Self.ipv4, length: 65_535),
      Array("PROXY TCP4 192.0.2.1 10.0.0.1 80 443\r\n".utf8), [22, 3, 1, 2, 0], Array(signature.dropLast()) + [0],
    ])
  func refused(bytes: [UInt8]) { #expect(ProxyHeader.parse(bytes) == .invalid) }

  @Test("Each part of a header is incomplete") func incomplete() {
    let header = Self.header(0x21, 0x11, Self.ipv4)
    for count in 0..<header.count { #expect(ProxyHeader.parse(header.prefix(count)) == .incomplete) }
  }

  private final class Activity: ChannelInboundHandler, Sendable {
    typealias InboundIn = ByteBuffer
    typealias InboundOut = String
    func channelActive(context: ChannelHandlerContext) { context.fireChannelRead(wrapInboundOut("active")) }
    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
      context.fireChannelRead(wrapInboundOut(String(buffer: unwrapInboundIn(data))))
    }
  }

  private func channel(from address: String, _ sources: ProxiedSources) throws -> EmbeddedChannel {
    let balancers = [try #require(AddressRange("10.0.0.0/8"))]
    let channel = EmbeddedChannel()
    channel.remoteAddress = try SocketAddress(ipAddress: address, port: 1)
    try channel.pipeline.syncOperations.addHandlers(
      ProxyProtocolHandler(balancers: balancers, sources: sources), Activity())
    channel.pipeline.fireChannelActive()
    return channel
  }

  @Test("The connection of a balancer is its client's after the header, in whatever pieces", arguments: [1, 5, 17, 99])
  func balancer(piece: Int) throws {
    let sources = ProxiedSources()
    let channel = try channel(from: "10.1.2.3", sources)
    #expect(try channel.readInbound(as: String.self) == nil)
    #expect(sources.name(of: channel) == "10.1.2.3")
    var bytes = Self.header(0x21, 0x11, Self.ipv4) + Array("hello".utf8)
    var text = ""
    while !bytes.isEmpty {
      try channel.writeInbound(ByteBuffer(bytes: bytes.prefix(piece)))
      bytes.removeFirst(min(piece, bytes.count))
      while let part = try channel.readInbound(as: String.self) { text += part }
    }
    #expect(text == "activehello")
    #expect(sources.name(of: channel) == "192.0.2.1")
    _ = try channel.finish()
    #expect(sources.name(of: channel) == "10.1.2.3")
  }

  @Test("Another client cannot choose its address") func stranger() throws {
    let sources = ProxiedSources()
    let channel = try channel(from: "203.0.113.9", sources)
    #expect(try channel.readInbound(as: String.self) == "active")
    try channel.writeInbound(ByteBuffer(bytes: Self.header(0x21, 0x11, Self.ipv4)))
    #expect(sources.name(of: channel) == "203.0.113.9")
    #expect(try channel.readInbound(as: String.self)?.isEmpty == false)
  }

  @Test("A balancer's connection without a header is closed, at once or after five seconds") func missing() throws {
    let channel = try channel(from: "10.1.2.3", ProxiedSources())
    #expect(channel.isActive == false)
    try channel.connect(to: SocketAddress(ipAddress: "10.1.2.3", port: 1)).wait()
    try channel.writeInbound(ByteBuffer(bytes: [22, 3, 1]))
    channel.embeddedEventLoop.run()
    #expect(!channel.isActive)
    #expect(try channel.readInbound(as: String.self) == nil)
    let silent = try self.channel(from: "10.1.2.3", ProxiedSources())
    try silent.connect(to: SocketAddress(ipAddress: "10.1.2.3", port: 1)).wait()
    silent.embeddedEventLoop.advanceTime(by: .seconds(6))
    #expect(!silent.isActive)
  }
}
