// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import Foundation
import Glibc
import NIOCore
import NIOPosix
import ServerTestSupport
import Testing

@testable import TokenServerCore
@testable import TokenServerHTTP

/// Tests with a peer that disappears without FIN or RST, like a board after a power loss.
@Suite(.timeLimit(.minutes(5)), .mayBlock) struct VanishedPeerTests {
  private static let userTimeout = ChannelOptions.tcpOption(.init(rawValue: TCP_USER_TIMEOUT))

  /// Returns a listening channel with a `ConnectionGuard` for each connection, and the accepted connections.
  private func listen(acknowledgeTime: TimeAmount?) async throws -> (any Channel, AsyncStream<any Channel>) {
    let table = ConnectionTable(limit: 9, limitPerSource: 9)
    let limits = ServerConfiguration.Limits(requestSeconds: 600)
    let (accepted, continuation) = AsyncStream<any Channel>.makeStream()
    let listener = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
      .childChannelInitializer { channel in
        channel.eventLoop.makeCompletedFuture {
          let handler =
            acknowledgeTime.map {
              ConnectionGuard(table: table, limits: limits, acknowledgeTime: $0)
            } ?? ConnectionGuard(table: table, limits: limits)
          try channel.pipeline.syncOperations.addHandler(handler)
          continuation.yield(channel)
        }
      }.bind(host: "127.0.0.1", port: 0).get()
    return (listener, accepted)
  }

  private func connect(to listener: any Channel) throws -> Int32 {
    try ServerTestSupport.connect(to: listener.localAddress?.port ?? 0, from: "127.0.0.1")
  }

  /// Makes the kernel drop all packets that arrive at the socket, including acknowledgments, so that the peer gets no
  /// reply.
  private func vanish(_ descriptor: Int32) throws {
    // struct sock_filter: BPF_RET | BPF_K, 0 bytes of the packet.
    let instruction: [UInt8] = [6, 0, 0, 0, 0, 0, 0, 0]
    let result = instruction.withUnsafeBytes { filter in
      // struct sock_fprog: the number of instructions and their address.
      var program: (UInt, UInt) = (1, UInt(bitPattern: filter.baseAddress))
      return setsockopt(descriptor, SOL_SOCKET, SO_ATTACH_FILTER, &program, socklen_t(MemoryLayout<(UInt, UInt)>.size))
    }
    try #require(result == 0)
  }

  @Test("Data sent on an accepted connection must be acknowledged within 30 s")
  func option() async throws {
    let (listener, accepted) = try await listen(acknowledgeTime: nil)
    let descriptor = try connect(to: listener)
    defer { close(descriptor) }
    let channel = try #require(await accepted.first { _ in true })
    // The option is set when the channel becomes active, on its event loop.
    var value: ChannelOptions.Types.SocketOption.Value = 0
    try await eventually("the option is set") {
      value = try await channel.getOption(Self.userTimeout).get()
      return value != 0
    }
    #expect(value == 30_000)
    try await listener.close()
  }

  @Test("A connection ends if its peer vanishes without FIN or RST")
  func vanished() async throws {
    let (listener, accepted) = try await listen(acknowledgeTime: .seconds(1))
    let descriptor = try connect(to: listener)
    defer { close(descriptor) }
    let channel = try #require(await accepted.first { _ in true })
    // Periodic data, like the heartbeats of an event stream.
    let beats = channel.eventLoop.scheduleRepeatedTask(initialDelay: .zero, delay: .milliseconds(200)) { _ in
      let context = try channel.pipeline.syncOperations.context(handlerType: ConnectionGuard.self)
      context.writeAndFlush(NIOAny(ByteBuffer(string: ":\n\n")), promise: nil)
    }
    defer { beats.cancel() }
    try await Task.sleep(for: .seconds(3))
    #expect(channel.isActive)
    try vanish(descriptor)
    // Without the option, the timers of TCP take 15 minutes, and the deadline of a request 10 minutes.
    try await eventually("the end of the connection") { !channel.isActive }
    try await listener.close()
  }
}
