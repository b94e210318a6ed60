// SPDX-License-Identifier: Apache-2.0
import CLinux
import ControlProtocol
import Glibc
import JSONValues
import ServiceLifecycle
import Threads

/// The server side of the control socket. One thread blocks in `accept`; there are no wake-ups without connections.
struct ControlServer: Service {
  /// Handles one request. It sends one or more lines, until it returns or the client disconnects (`reply` throws).
  typealias Answer =
    @Sendable (ControlRequest, _ reply: @escaping @Sendable (any Encodable & Sendable) throws -> Void) async throws ->
    Void

  private let path: String
  private let socket: UnixSocket
  private let answer: Answer

  /// Clients that connect from now on wait until `run`.
  init(path: String, _ answer: @escaping Answer) throws(UnixSocket.SocketError) {
    self.path = path
    self.answer = answer
    socket = try UnixSocket.listening(at: path)
  }

  func run() async throws {
    let descriptor = socket.descriptor
    let (callers, continuation) = AsyncStream.makeStream(of: Int32.self, bufferingPolicy: .bufferingOldest(16))
    Self.startAccepting(descriptor, continuation)
    await cancelWhenGracefulShutdown {
      await withTaskCancellationHandler {
        await withDiscardingTaskGroup { group in
          for await caller in callers { group.addTask { await serve(caller) } }
          group.cancelAll()
        }
      } onCancel: {
        // Wakes the thread that is blocked in `accept`, which then ends the stream.
        shutdown(descriptor, Int32(SHUT_RDWR))
      }
    }
    unlink(path)
  }

  private static func startAccepting(_ descriptor: Int32, _ continuation: AsyncStream<Int32>.Continuation) {
    detachThread {
      while true {
        let caller = approval_linux_accept(descriptor)
        guard caller >= 0 else { break }
        if case .enqueued = continuation.yield(caller) { continue }
        close(caller)
      }
      continuation.finish()
    }
  }

  private func serve(_ descriptor: Int32) async {
    let socket = UnixSocket(descriptor: descriptor)
    // Only the CLI of this program connects; drop slow clients after 1 s.
    socket.setTimeout(seconds: 1)
    guard let line = await readLine(from: socket) else { return }
    do {
      let request = try ControlRequest(line: line)
      try await untilHangUp(of: socket) { try await answer(request) { try socket.write(line: JSONMessage.encode($0)) } }
    } catch {
      // No error is sent if the client disconnected (`write` reports that) or the task was canceled because the service
      // ends.
      let failure =
        CommandError(explaining: error) ?? CommandError(.unavailable, "the service is ending; try again")
      try? socket.write(line: JSONMessage.encode(ControlFailure(failure)))
    }
  }
}

/// Reads one line on a separate thread, so that a client that sends nothing blocks no other task. The time limit is 2
/// s.
private func readLine(from socket: UnixSocket) async -> [UInt8]? {
  await withCheckedContinuation { continuation in
    detachThread { continuation.resume(returning: (try? socket.readLine(within: 2)) ?? nil) }
  }
}

/// Runs `body` and cancels it when the client disconnects, so that no panel task continues without a waiting command.
private func untilHangUp(of socket: UnixSocket, _ body: @escaping @Sendable () async throws -> Void) async throws {
  let work = Task { try await body() }
  let descriptor = socket.descriptor
  detachThread {
    approval_linux_wait_for_hang_up(descriptor)
    work.cancel()
    withExtendedLifetime(socket) {}
  }
  let result = await withTaskCancellationHandler {
    await work.result
  } onCancel: {
    work.cancel()
  }
  // Wakes the thread that waits for the disconnection.
  defer { shutdown(descriptor, Int32(SHUT_RD)) }
  try result.get()
}
