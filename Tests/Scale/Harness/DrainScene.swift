// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import Foundation
import ProgramHarness
import ReferenceProtocol
import ServerTestSupport
import Testing

/// Two servers behind HAProxy that are stopped and started again one after the other, while clients send requests and
/// devices have event streams.
final class DrainScene {
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

  private let server: TokenServerProcess
  private let group: ServerGroup
  private let load: DrainLoad
  private let devices: [DeviceClient]
  private let kept: KeptConnection

  /// Returns when all devices have streams and requests are answered.
  /// - Parameter executable: the path of another version of `token-server`; nil for the built one.
  init(executable: String? = nil) async throws {
    let server = try TokenServerProcess(configuration: Self.configuration, servers: 2, executable: executable)
    let devices = try (0..<12).map { try DeviceClient.enrolled(at: server, as: "user\($0)") }
    let load = DrainLoad(server, try server.addPortal())
    devices.forEach(load.follow)
    for number in 0..<3 { load.answer(as: "user\(number)", devices[number]) }
    (self.server, self.devices, self.load) = (server, devices, load)
    group = try #require(server.group)
    kept = try KeptConnection(server)
    try await eventually("streams and answers") { load.streams == devices.count && load.answers >= 4 ? () : nil }
  }

  /// Stops a server, expects that streams end one after the other, starts it again, and waits until the balancer has
  /// noticed.
  /// - Parameter executable: as for `ServerGroup.startServer`.
  func replace(_ index: Int, with executable: String? = nil) async throws {
    let (earlier, answers) = (load.ends.count, load.answers)
    let stop = ContinuousClock.now
    let status = try await onThread("the end of a server") { [group] in group.drainServer(index) }
    #expect(status == 0)
    let ends = load.ends.dropFirst(earlier).map { $0 - stop }
    print("server \(index): \(load.answers - answers) answers meanwhile, streams ended after \(ends)")
    // The balancer had divided the streams among the servers.
    #expect(ends.count >= devices.count / 3)
    #expect(ends.allSatisfy { $0 >= Self.drainTime / 2 })
    let (first, last) = (try #require(ends.first), try #require(ends.last))
    #expect(last - first > Self.drainTime / 4)
    #expect(load.answers > answers)
    let start = try await onThread("the start of a server") { [group] in
      Result { try group.startServer(index, with: executable) }
    }
    try start.get()
    // The balancer takes it in after the next check.
    try await Task.sleep(for: .seconds(2))
  }

  /// Waits until a hint of a new request has come on each stream, whichever server has it.
  func expectHints() async throws {
    try await eventually("all streams") { load.streams == devices.count ? () : nil }
    let transactions = try devices.enumerated().map { try load.begin(for: "user\($0)", $1) }
    try await eventually("hints on all streams") { load.seen.isSuperset(of: transactions) ? () : nil }
  }

  deinit { load.end() }

  /// Expects that a hint comes on each stream and that no request has failed.
  func end() async throws {
    try await expectHints()
    await load.stop()
    #expect(load.failures.isEmpty)
    let results = try kept.stop()
    #expect(results.count > 50 && results.allSatisfy { $0.hasPrefix("200 ") }, "\(results)")
    #expect(results.count { $0 == "200 0" } > results.count / 2, "\(results)")
  }

  /// Runs what blocks on a thread of its own.
  private func onThread<Value: Sendable>(
    _ what: String, _ body: @escaping @Sendable () -> Value
  ) async throws -> Value {
    let end: Task<Value, Never> = Task {
      await withCheckedContinuation { continuation in
        Thread.detachNewThread { continuation.resume(returning: body()) }
      }
    }
    return try await end.finished(what, within: .seconds(180))
  }
}
