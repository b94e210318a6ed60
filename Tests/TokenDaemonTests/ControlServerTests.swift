// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import ControlProtocol
import Foundation
import Glibc
import Testing
import UnixSockets

@testable import TokenDaemon

/// Clients of the control socket that are many, slow or malformed.
@Suite(.timeLimit(.minutes(5))) struct ControlServerTests {
  /// Serves while `body` runs. A request to watch is answered once and stays open; the others end at once.
  private func serving(_ body: (_ path: String) async throws -> Void) async throws {
    let path = "/tmp/at-control-\(UUID().uuidString)"
    let server = try ControlServer(path: path) { request, reply in
      try reply(Done())
      guard request == .watch else { return }
      try await Task.sleep(for: .seconds(600))
    }
    let running = Task { try await server.run() }
    try await body(path)
    running.cancel()
    try await running.finished()
  }

  /// A call on a thread of its own, as a command makes it.
  private func call(_ path: String) async -> Result<Done, any Error> {
    await withCheckedContinuation { continuation in
      Thread.detachNewThread {
        continuation.resume(returning: Result { try ControlClient(path: path).call(.status, Done.self, within: 60) })
      }
    }
  }

  /// Reads a line on a thread of its own: the service needs those of the tasks.
  private func line(from socket: UnixSocket) async -> [UInt8]? {
    socket.setTimeout(seconds: 60)
    return await withCheckedContinuation { continuation in
      Thread.detachNewThread { continuation.resume(returning: (try? socket.readLine(within: 60)) ?? nil) }
    }
  }

  private func succeeds(_ path: String) async throws {
    let deadline = ContinuousClock.now + .seconds(60)
    while case .failure(let error) = await call(path) {
      try #require(ContinuousClock.now < deadline, "\(error)")
      try await Task.sleep(for: .milliseconds(20))
    }
  }

  /// Fails without the limit: each client has a thread and a descriptor.
  @Test("More clients than the limit are refused with a reason, until one of the others ends") func tooMany()
    async throws
  {
    try await serving { path in
      var watchers: [UnixSocket] = []
      for _ in 1...ControlServer.mostClients {
        let socket = try UnixSocket.connected(to: path)
        try socket.write(line: ControlRequest.watch.line)
        try #require(await line(from: socket) != nil)
        watchers.append(socket)
      }
      let refused = try UnixSocket.connected(to: path)
      let answer = try #require(await line(from: refused))
      guard case .failure(let error) = try ControlResponse<Done>(line: answer) else {
        Issue.record("not refused: \(String(decoding: answer, as: UTF8.self))")
        return
      }
      #expect(error.code == .unavailable && error.description.contains("too many"))
      watchers.removeLast()
      try await succeeds(path)
    }
  }

  /// Fails if a client that is late, on a busy machine, is dropped without an answer.
  @Test("A request that comes late is answered") func late() async throws {
    try await serving { path in
      for _ in 1...5 {
        let began = ContinuousClock.now
        let socket = try UnixSocket.connected(to: path)
        try await Task.sleep(for: .milliseconds(2500))
        if (try? socket.write(line: ControlRequest.status.line)) != nil, await line(from: socket) != nil { return }
        // Unless the machine has taken as long as the service waits.
        try #require(ContinuousClock.now - began > .seconds(10))
      }
      Issue.record("never answered")
    }
  }

  @Test(
    "A malformed line gets one error line, and the service goes on",
    arguments: [
      "", "{", "null", "[]", "{}", "\u{0}", #"{"request":1}"#, #"{"request":"status","request":"led"}"#,
      #"{"request":"status","version":99999999999999999999}"#, #"{"request":"hold","milliseconds":1e400}"#,
      String(repeating: "[", count: 100_000), "\u{FF}\u{FE}",
    ])
  func malformed(line: String) async throws {
    try await serving { path in
      let client = try UnixSocket.connected(to: path)
      try client.write(line: Array(line.utf8))
      let answer = try #require(await self.line(from: client))
      guard case .failure = try ControlResponse<Done>(line: answer) else {
        Issue.record("accepted")
        return
      }
      #expect(await self.line(from: client) == nil)
      try await succeeds(path)
    }
  }

  @Test("Half lines do not keep the service from others") func halfLines() async throws {
    try await serving { path in
      let halves = try (1...ControlServer.mostClients).map { _ in
        let socket = try UnixSocket.connected(to: path)
        _ = send(socket.descriptor, "{", 1, Int32(MSG_NOSIGNAL))
        return socket
      }
      try await succeeds(path)
      withExtendedLifetime(halves) {}
    }
  }
}
