// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import Glibc
import Testing
import Threads
import UnixSockets

@testable import RelayProtocol

@Suite("Relay socket", .timeLimit(.minutes(5))) struct RelaySocketTests {
  @Test("Messages arrive one by one, also longer ones than the socket's buffer") func arrive() async throws {
    let (one, other) = try socketPair()
    let messages: [[UInt8]] = [[], [1], [UInt8](repeating: 5, count: 900_000), [2, 3]]
    let sending = Task { for message in messages { try await one.send(message) } }
    for message in messages { #expect(try await other.receive(atMost: 1 << 20) == message) }
    try await sending.finished()
    one.end()
    #expect(try await other.receive(atMost: 1) == nil)
  }

  @Test("A message in pieces arrives whole, and one that is cut off never") func pieces() async throws {
    let (descriptor, socket) = try rawPair()
    let waiting = Task { try await socket.receive(atMost: 10) }
    for byte: UInt8 in [0, 0, 0, 3, 7, 8, 9, 0, 0] {
      _ = send(descriptor, [byte], 1, Int32(MSG_NOSIGNAL))
      await Task.yield()
    }
    #expect(try await waiting.finished() == [7, 8, 9])
    close(descriptor)
    await #expect(throws: RelayError.closed) { try await socket.receive(atMost: 10) }
  }

  @Test("A message that is too long is refused by its length alone") func tooLong() async throws {
    let (descriptor, socket) = try rawPair()
    defer { close(descriptor) }
    _ = send(descriptor, [255, 255, 255, 255] as [UInt8], 4, Int32(MSG_NOSIGNAL))
    await #expect(throws: RelayError.tooLong(limit: 10)) { try await socket.receive(atMost: 10) }
  }

  @Test("A peer that sends a byte at a time does not move the deadline") func drip() async throws {
    let (descriptor, socket) = try rawPair()
    let dripping = Task {
      _ = send(descriptor, [0, 1, 0, 0] as [UInt8], 4, Int32(MSG_NOSIGNAL))
      while !Task.isCancelled {
        _ = send(descriptor, [1] as [UInt8], 1, Int32(MSG_NOSIGNAL))
        try? await Task.sleep(for: .milliseconds(5))
      }
      close(descriptor)
    }
    let due = ContinuousClock.now + .milliseconds(200)
    await #expect(throws: RelayError.timedOut) { try await socket.receive(atMost: 1 << 20, until: due) }
    // The whole message would take minutes.
    #expect(ContinuousClock.now - due < .seconds(45))
    dripping.cancel()
  }

  @Test("A peer that does not read does not move the deadline of a sender") func unread() async throws {
    let (one, other) = try socketPair()
    let message = [UInt8](repeating: 0, count: 4 << 20)
    await #expect(throws: RelayError.timedOut) { try await one.send(message, until: .now + .milliseconds(200)) }
    withExtendedLifetime(other) {}
  }

  @Test("A canceled task stops waiting") func canceled() async throws {
    let (one, other) = try socketPair()
    let waiting = Task { try await one.receive(atMost: 10, until: .now + .seconds(60)) }
    try await Task.sleep(for: .milliseconds(20))
    waiting.cancel()
    await #expect(throws: RelayError.canceled) { try await waiting.finished() }
    await #expect(throws: RelayError.canceled) {
      let late = Task {
        withUnsafeCurrentTask { $0?.cancel() }
        return try await one.receive(atMost: 10, until: .now + .seconds(60))
      }
      try await late.finished()
    }
    withExtendedLifetime(other) {}
  }

  @Test("A task whose peer sends without end can be canceled") func flooded() async throws {
    let (descriptor, socket) = try rawPair()
    let hint = [0, 0, 0, 1] + RelayReply.hint.bytes
    let hints = [UInt8]((0..<10_000).map { _ in hint }.joined())
    // Ends when the socket is released, or after a minute, so that a task that goes on receiving ends, too.
    let end = ContinuousClock.now + .seconds(60)
    let flooding = detachThread {
      while ContinuousClock.now < end, send(descriptor, hints, hints.count, Int32(MSG_NOSIGNAL)) > 0 {}
      close(descriptor)
    }
    try #require(flooding)
    let receiving = Task { while try await socket.receive(atMost: 100) == RelayReply.hint.bytes {} }
    try await Task.sleep(for: .milliseconds(50))
    receiving.cancel()
    await #expect(throws: RelayError.canceled) { try await receiving.finished() }
    socket.end()
  }

  @Test("Nothing listens on the socket") func nothingListens() async throws {
    #expect(throws: RelayError.notRunning("/nonexistent/relay.sock")) {
      try RelaySocket.connected(to: "/nonexistent/relay.sock")
    }
  }

  /// A descriptor, and the socket at its other end.
  private func rawPair() throws -> (Int32, RelaySocket) {
    var ends: [Int32] = [-1, -1]
    try #require(socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0, &ends) == 0)
    return (ends[0], RelaySocket(UnixSocket(descriptor: ends[1])))
  }
}
