// SPDX-License-Identifier: Apache-2.0
import CLinux
import ControlProtocol
import Glibc
import JSONValues
import ServiceLifecycle
import Synchronization
import Threads
import UnixSockets

/// The server side of the control socket. One thread blocks in `accept`; there are no wake-ups without connections.
struct ControlServer: Service {
  /// The maximum number of clients at the same time: each takes a descriptor and a thread.
  static let mostClients = 64

  /// Handles one request. It sends one or more lines, until it returns or the client disconnects (`reply` throws).
  typealias Answer =
    @Sendable (ControlRequest, _ reply: @escaping @Sendable (any Encodable & Sendable) throws -> Void) async throws ->
    Void

  private let path: String
  private let socket: UnixSocket
  private let answer: Answer
  private let clients = Clients()

  private final class Clients: Sendable {
    let count = Atomic(0)
    let isOver = Atomic(false)
  }

  /// Clients that connect from now on wait until `run`.
  init(path: String, _ answer: @escaping Answer) throws(UnixSocket.SocketError) {
    self.path = path
    self.answer = answer
    socket = try UnixSocket.listening(at: path)
  }

  func run() async throws {
    let descriptor = socket.descriptor
    let (callers, continuation) = AsyncStream.makeStream(
      of: Int32.self, bufferingPolicy: .bufferingOldest(Self.mostClients))
    Self.startAccepting(descriptor, clients, continuation)
    await cancelWhenGracefulShutdown { [clients] in
      await withTaskCancellationHandler {
        await withDiscardingTaskGroup { group in
          for await caller in callers {
            group.addTask {
              await serve(caller)
              clients.count.subtract(1, ordering: .relaxed)
            }
          }
          group.cancelAll()
        }
      } onCancel: {
        // Wakes the thread that is blocked in `accept`, which then ends the stream.
        clients.isOver.store(true, ordering: .releasing)
        shutdown(descriptor, Int32(SHUT_RDWR))
      }
    }
    unlink(path)
  }

  private static func startAccepting(
    _ descriptor: Int32, _ clients: Clients, _ continuation: AsyncStream<Int32>.Continuation
  ) {
    let hasStarted = detachThread {
      while !clients.isOver.load(ordering: .acquiring) {
        let caller = approval_linux_accept(descriptor)
        guard caller >= 0 else {
          // Out of descriptors or memory: wait and retry.
          if !clients.isOver.load(ordering: .acquiring) { usleep(100_000) }
          continue
        }
        guard clients.count.add(1, ordering: .relaxed).newValue <= mostClients,
          case .enqueued = continuation.yield(caller)
        else {
          clients.count.subtract(1, ordering: .relaxed)
          refuse(caller)
          continue
        }
      }
      continuation.finish()
    }
    // The service ends, and is started again.
    if !hasStarted { continuation.finish() }
  }

  private static func refuse(_ caller: Int32) {
    let failure = CommandError(.unavailable, "too many commands use the service at the same time; try again")
    let line = JSONMessage.encode(ControlFailure(failure)) + [UInt8(ascii: "\n")]
    // The line fits into any socket buffer.
    _ = send(caller, line, line.count, Int32(MSG_NOSIGNAL | MSG_DONTWAIT))
    close(caller)
  }

  private func serve(_ descriptor: Int32) async {
    let socket = UnixSocket(descriptor: descriptor)
    // On a busy machine a client may be late with its request.
    socket.setTimeout(seconds: requestSeconds)
    do {
      // Nil: the client only looked whether a service listens.
      guard let line = try await readLine(from: socket) else { return }
      // Only the CLI of this program connects; drop clients that do not read for 1 s, or a line within 10 s.
      socket.setTimeout(seconds: 1)
      let request = try ControlRequest(line: line)
      try await untilHangUp(of: socket) {
        try await answer(request) {
          try socket.write(line: JSONMessage.encode($0), within: lineSeconds, willWait: threadWillBlock)
        }
      }
    } catch is UnixSocket.SocketError {
      // The client has disconnected, or does not read. Nothing can follow a part of a line.
    } catch {
      let failure =
        CommandError(explaining: error) ?? CommandError(.unavailable, "the service is ending; try again")
      try? socket.write(line: JSONMessage.encode(ControlFailure(failure)))
    }
  }
}

/// How long a client has for its request.
private let requestSeconds = 10
/// The time limit for each line of a response.
private let lineSeconds = 10

/// Reads one line on a separate thread, so that a client that sends nothing blocks no other task.
private func readLine(from socket: UnixSocket) async throws(CommandError) -> [UInt8]? {
  let line: Result<[UInt8]?, CommandError> = await withCheckedContinuation { continuation in
    let hasStarted = detachThread {
      let line = Result { () throws(UnixSocket.SocketError) in try socket.readLine(within: requestSeconds) }
      continuation.resume(returning: line.mapError { CommandError(.usage, "no request came: \($0)") })
    }
    if !hasStarted { continuation.resume(returning: .failure(.noThread)) }
  }
  return try line.get()
}

extension CommandError {
  fileprivate static let noThread = CommandError(.unavailable, "the system has no thread left; try again")
}

/// Runs `body` and cancels it when the client disconnects, so that no panel task continues without a waiting command.
private func untilHangUp(of socket: UnixSocket, _ body: @escaping @Sendable () async throws -> Void) async throws {
  let work = Task { try await body() }
  let descriptor = socket.descriptor
  let isWatched = detachThread {
    approval_linux_wait_for_hang_up(descriptor)
    work.cancel()
    withExtendedLifetime(socket) {}
  }
  guard isWatched else {
    work.cancel()
    if case .failure = await work.result { throw CommandError.noThread }
    return
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
