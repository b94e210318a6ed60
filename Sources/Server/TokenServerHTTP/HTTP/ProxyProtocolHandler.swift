// SPDX-License-Identifier: Apache-2.0
import HummingbirdCore
import Logging
import NIOCore
import ReferenceProtocol
import Synchronization
import TokenServerCore

/// The clients of connections that load balancers pass on.
final class ProxiedSources: Sendable {
  private let names = Mutex<[ObjectIdentifier: String]>([:])

  /// - Returns: the key of the client's address for limits; the peer's own without a balancer.
  func name(of channel: any Channel) -> String {
    names.withLock { $0[ObjectIdentifier(channel)] } ?? ConnectionSource.name(of: channel.remoteAddress?.ipAddress)
  }

  fileprivate func set(_ name: String?, of channel: any Channel) {
    names.withLock { $0[ObjectIdentifier(channel)] = name }
  }
}

/// Reads the PROXY protocol's header at the beginning of a connection from a load balancer, before TLS. The connection
/// becomes active for all other handlers when the header is complete.
final class ProxyProtocolHandler: ChannelInboundHandler, RemovableChannelHandler {
  typealias InboundIn = ByteBuffer
  typealias InboundOut = ByteBuffer

  private static let timeLimit = TimeAmount.seconds(5)

  private let balancers: [AddressRange]
  private let sources: ProxiedSources
  private var isWaiting = false
  private var received = ByteBuffer()
  private var deadline: Scheduled<Void>?

  /// - Parameter balancers: the addresses whose connections begin with the header. Others have none.
  init(balancers: [AddressRange], sources: ProxiedSources) {
    self.balancers = balancers
    self.sources = sources
  }

  func channelActive(context: ChannelHandlerContext) {
    let peer = context.remoteAddress?.ipAddress.flatMap { IPAddressBytes.parse($0) }
      .map { PrivateAddress.unmapped($0) }
    isWaiting = peer.map { peer in balancers.contains { $0.contains(peer) } } ?? false
    guard isWaiting else { return context.fireChannelActive() }
    let channel = context.channel
    deadline = context.eventLoop.scheduleTask(in: Self.timeLimit) { channel.close(promise: nil) }
  }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    guard isWaiting else { return context.fireChannelRead(data) }
    var bytes = unwrapInboundIn(data)
    received.writeBuffer(&bytes)
    switch ProxyHeader.parse(received.readableBytesView) {
    case .incomplete: return
    case .invalid: context.close(promise: nil)
    case .header(let header):
      isWaiting = false
      deadline?.cancel()
      sources.set(header.source.map { ConnectionSource.name(ofBytes: $0) }, of: context.channel)
      received.moveReaderIndex(forwardBy: header.length)
      context.fireChannelActive()
      if received.readableBytes > 0 { context.fireChannelRead(wrapInboundOut(received)) }
      received = ByteBuffer()
    }
  }

  func channelInactive(context: ChannelHandlerContext) {
    deadline?.cancel()
    context.fireChannelInactive()
    // After the handlers that count the connection by its source.
    sources.set(nil, of: context.channel)
  }
}

@available(*, unavailable)
extension ProxyProtocolHandler: Sendable {}

/// Connections of load balancers among those of clients.
struct ProxiedChannel<Base: ServerChildChannel>: ServerChildChannel {
  let base: Base
  let balancers: [AddressRange]
  let sources: ProxiedSources

  func setup(channel: any Channel, logger: Logger) -> EventLoopFuture<Base.Value> {
    channel.eventLoop.makeCompletedFuture {
      try channel.pipeline.syncOperations.addHandler(ProxyProtocolHandler(balancers: balancers, sources: sources))
    }.flatMap { base.setup(channel: channel, logger: logger) }
  }

  func handle(value: Base.Value, logger: Logger) async { await base.handle(value: value, logger: logger) }
}
