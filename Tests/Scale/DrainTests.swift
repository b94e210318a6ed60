// SPDX-License-Identifier: Apache-2.0
import Foundation
import ProgramHarness
import ReferenceProtocol
import ServerTestSupport
import Testing

/// Servers that are stopped and started again one after the other, as for an update, while clients send requests and
/// devices have event streams.
@Suite(.timeLimit(.minutes(10)), .serialized) struct DrainTests {
  private static let drainTime = Duration.seconds(6)
  private static let configuration = """
    [operations]
    drain_seconds = \(drainTime.components.seconds)
    [[type]]
    name = "login"
    method = "push"
    request_expires_in = 600
    messages = { en = "Log in?" }
    """

  @Test("While servers are stopped one by one no request fails, and streams end one after the other")
  func drain() async throws {
    let server = try TokenServerProcess(configuration: Self.configuration, servers: 2)
    let group = try #require(server.group)
    let load = DrainLoad(server, try server.addPortal())
    let devices = try (0..<12).map { try DeviceClient.enrolled(at: server, as: "user\($0)") }
    devices.forEach(load.follow)
    for number in 0..<3 { load.answer(as: "user\(number)", devices[number]) }
    let kept = try KeptConnection(server)
    try await eventually("streams and answers") { load.streams == devices.count && load.answers >= 4 ? () : nil }

    for index in 0..<2 {
      let (earlier, answers) = (load.ends.count, load.answers)
      let stop = ContinuousClock.now
      #expect(await onThread { group.drainServer(index) } == 0)
      let ends = load.ends.dropFirst(earlier).map { $0 - stop }
      print("server \(index): \(load.answers - answers) answers meanwhile, streams ended after \(ends)")
      // The balancer had divided the streams among the servers.
      #expect(ends.count >= devices.count / 3)
      #expect(ends.allSatisfy { $0 >= Self.drainTime / 2 })
      #expect(try #require(ends.last) - #require(ends.first) > Self.drainTime / 4)
      #expect(load.answers > answers)
      try await onThread { Result { try group.startServer(index) } }.get()
      // The balancer takes it in after the next check.
      try await Task.sleep(for: .seconds(2))
    }

    try await eventually("all streams") { load.streams == devices.count ? () : nil }
    let transactions = try devices.enumerated().map { try load.begin(for: "user\($0)", $1) }
    try await eventually("hints on all streams") { load.seen.isSuperset(of: transactions) ? () : nil }
    await load.stop()
    #expect(load.failures.isEmpty)
    let results = try kept.stop()
    #expect(results.count > 50 && results.allSatisfy { $0.hasPrefix("200 ") }, "\(results)")
    #expect(results.count { $0 == "200 0" } > results.count / 2, "\(results)")
  }

  /// Runs what blocks on a thread of its own.
  private func onThread<Value: Sendable>(_ body: @escaping @Sendable () -> Value) async -> Value {
    await withCheckedContinuation { continuation in Thread.detachNewThread { continuation.resume(returning: body()) } }
  }
}
