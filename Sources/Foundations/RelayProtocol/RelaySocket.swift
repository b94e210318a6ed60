// SPDX-License-Identifier: Apache-2.0
import CLinux
import Glibc
import Synchronization
import Threads
package import UnixSockets

/// One connection between the two processes, for one exchange. Messages have a length before them. The kernel's buffer
/// of the socket is the only queue: a sender waits while it is full.
///
/// At most one task may send, and one may receive.
package final class RelaySocket: Sendable {
  private static let lengthBytes = 4
  private static let chunkBytes = 4 << 10

  private let socket: UnixSocket
  private let poller = SocketPoller.shared
  /// What was read and not yet returned: less than one message and one chunk.
  private let received = Mutex<[UInt8]>([])
  /// The number of calls of send(2) and recv(2) so far.
  private let calls = Atomic(0)

  /// - Parameter socket: connected.
  package init(_ socket: UnixSocket) {
    self.socket = socket
    approval_linux_never_wait(socket.descriptor)
  }

  /// Connects to the process that listens at `path`. Does not wait: if too many connections wait there, it fails.
  package static func connected(to path: String) throws(RelayError) -> RelaySocket {
    do { return RelaySocket(try UnixSocket.connected(to: path, waits: false)) } catch {
      switch error {
      case .call(_, ENOENT), .call(_, ECONNREFUSED): throw .notRunning(path)
      case .call(_, EAGAIN): throw .notAnswering
      case .call(let call, let number): throw .call(call, errno: number)
      default: throw .malformed("\(error)")
      }
    }
  }

  /// Ends the connection for both processes. Idempotent; any thread.
  package func end() { shutdown(socket.descriptor, Int32(SHUT_RDWR)) }

  /// Sends a message.
  /// - Parameter due: when the other process must have taken it; nil for no limit.
  package func send(_ message: [UInt8], until due: ContinuousClock.Instant? = nil) async throws(RelayError) {
    try await send([message], until: due)
  }

  /// Sends messages together, so that the other process is woken once if the kernel's buffer has room for them.
  /// - Parameter due: when the other process must have taken them; nil for no limit.
  package func send(_ messages: [[UInt8]], until due: ContinuousClock.Instant? = nil) async throws(RelayError) {
    var bytes: [UInt8] = []
    for message in messages {
      let length = UInt32(clamping: message.count)
      bytes += (0..<Self.lengthBytes).map { UInt8(truncatingIfNeeded: length >> (24 - 8 * $0)) }
      bytes += message
    }
    var rest = bytes[...]
    while !rest.isEmpty {
      try await pause()
      let count = rest.withUnsafeBytes { Glibc.send(socket.descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL)) }
      let number = errno
      if count > 0 {
        rest = rest.dropFirst(count)
      } else if number == EAGAIN {
        try await wait(.writing, until: due)
      } else if number != EINTR {
        throw number == EPIPE || number == ECONNRESET ? .closed : .call("send", errno: number)
      }
    }
  }

  /// Receives a message.
  /// - Parameters:
  ///   - limit: the maximum number of bytes of the message.
  ///   - due: when it must be complete; nil for no limit.
  /// - Returns: nil if the other process has ended the connection between two messages.
  package func receive(
    atMost limit: Int, until due: ContinuousClock.Instant? = nil
  ) async throws(RelayError) -> [UInt8]? {
    while true {
      // The other process may send without end, so that this task never waits for it.
      guard !Task.isCancelled else { throw .canceled }
      if let message = try takeMessage(atMost: limit) { return message }
      try await pause()
      // The other process may send a byte at a time.
      if let due, due <= .now { throw .timedOut }
      let (count, number) = read()
      if count > 0 {
        continue
      } else if count == 0 || number == ECONNRESET {
        guard received.withLock({ $0.isEmpty }) else { throw .closed }
        return nil
      } else if number == EAGAIN {
        try await wait(.reading, until: due)
      } else if number != EINTR {
        throw .call("recv", errno: number)
      }
    }
  }

  /// Lets other tasks of this thread run after some calls that did not wait: the calls that follow may never have to.
  /// Not before each, because a task that gives way and the one that it has made able to run wake two threads.
  private func pause() async throws(RelayError) {
    if calls.wrappingAdd(1, ordering: .relaxed).newValue.isMultiple(of: 8) { await Task.yield() }
    guard !Task.isCancelled else { throw .canceled }
  }

  /// One call of recv(2), whose buffer is not kept while the task waits.
  /// - Returns: what it returns, and `errno`.
  private func read() -> (count: Int, number: Int32) {
    withUnsafeTemporaryAllocation(byteCount: Self.chunkBytes, alignment: 1) { chunk in
      let count = recv(socket.descriptor, chunk.baseAddress, chunk.count, 0)
      let number = errno
      if count > 0 { received.withLock { $0 += chunk[..<count] } }
      return (count, number)
    }
  }

  private func takeMessage(atMost limit: Int) throws(RelayError) -> [UInt8]? {
    let message = received.withLock { bytes -> Result<[UInt8], RelayError>? in
      guard bytes.count >= Self.lengthBytes else { return nil }
      let length = Int(bytes[..<Self.lengthBytes].reduce(UInt32(0)) { $0 << 8 | UInt32($1) })
      guard length <= limit else { return .failure(.tooLong(limit: limit)) }
      guard bytes.count - Self.lengthBytes >= length else { return nil }
      defer { bytes.removeFirst(Self.lengthBytes + length) }
      return .success(Array(bytes[Self.lengthBytes..<(Self.lengthBytes + length)]))
    }
    return try message?.get()
  }

  private func wait(_ direction: SocketPoller.Direction, until due: ContinuousClock.Instant?) async throws(RelayError) {
    switch await poller.wait(for: socket.descriptor, direction, until: due) {
    case .ready: return
    case .timedOut: throw .timedOut
    case .canceled: throw .canceled
    case .failed(let number): throw .call("epoll_ctl", errno: number)
    }
  }
}
