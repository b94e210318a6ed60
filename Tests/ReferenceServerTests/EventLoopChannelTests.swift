// SPDX-License-Identifier: Apache-2.0
import HummingbirdCore
import Logging
import NIOCore
import NIOEmbedded
import NIOPosix
import Testing

@testable import TokenServerHTTP

@Suite(.timeLimit(.minutes(2))) struct EventLoopChannelTests {
  private struct Accepted: ServerChildChannelValue {
    let channel: any Channel
  }

  private struct Connections: ServerChildChannel {
    func setup(channel: any Channel, logger: Logger) -> EventLoopFuture<Accepted> {
      channel.eventLoop.makeSucceededFuture(Accepted(channel: channel))
    }

    func handle(value: Accepted, logger: Logger) async {}
  }

  /// Fails if connections get the loops in turn: half of the loops would have all event streams, which are idle, and
  /// the others all requests. The bounds are ten standard deviations from the mean.
  @Test("Requests use all event loops, although each token opens an event stream before")
  func sharedWork() async throws {
    let group = MultiThreadedEventLoopGroup(numberOfThreads: 4)
    let connections = EventLoopChannel(base: Connections(), group: group)
    var requests: [ObjectIdentifier: Int] = [:]
    for number in 0..<1600 {
      // As a listening socket does for each connection.
      let loop = group.next()
      if number % 2 == 1 { requests[ObjectIdentifier(loop), default: 0] += 1 }
      let channel = EmbeddedChannel()
      _ = connections.setup(channel: channel, logger: Logger(label: "test"))
      _ = try channel.finish()
    }
    #expect(requests.count == 4 && requests.values.allSatisfy { (75...325).contains($0) }, "\(requests)")
    try await group.shutdownGracefully()
  }
}
