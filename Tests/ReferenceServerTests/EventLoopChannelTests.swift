// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import NIOCore
import NIOPosix
import Testing

@testable import TokenServerHTTP

@Suite(.timeLimit(.minutes(2))) struct EventLoopChannelTests {
  /// Fails if connections get the loops in turn: half of the loops would have all event streams, which are idle, and
  /// the others all requests.
  @Test("Requests use all event loops, although each token opens an event stream before")
  func sharedWork() async throws {
    let group = MultiThreadedEventLoopGroup(numberOfThreads: 4)
    var random = SeededGenerator(seed: 7)
    var requests: [ObjectIdentifier: Int] = [:]
    for number in 0..<800 {
      let loop = group.next()
      if number % 2 == 1 { requests[ObjectIdentifier(loop), default: 0] += 1 }
      group.skipLoops(using: &random)
    }
    #expect(requests.count == 4 && requests.values.allSatisfy { (50...150).contains($0) }, "\(requests)")
    try await group.shutdownGracefully()
  }
}
