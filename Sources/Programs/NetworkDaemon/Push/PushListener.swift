// SPDX-License-Identifier: Apache-2.0
import CLinux
import Glibc
import Synchronization
import Threads

/// Receives the HTTP requests by which privacyIDEA's HTTP gateway reports that a login has begun. The sender is not
/// authenticated, so a request is only a hint: it triggers a poll of the server. Connections are handled one at a time,
/// each with a time limit. An attacker who occupies the listener only delays hints; polling goes on.
package final class PushListener: Sendable {
  /// The time limit for one request.
  package static let patience = Duration.seconds(2)

  private let descriptor: Int32
  private let patience: Duration
  private let uptime: @Sendable () -> Duration
  private let onHint: @Sendable () -> Void
  private let isOver = Atomic(false)

  /// Binds and listens; `run` accepts connections.
  /// - Parameters:
  ///   - patience: the time limit for one request.
  ///   - uptime: the time on a monotonic clock; by default since the start of this process.
  ///   - onHint: called on a thread of its own.
  package init(
    at address: ListenAddress, patience: Duration = PushListener.patience,
    uptime: @escaping @Sendable () -> Duration = sinceStart, onHint: @escaping @Sendable () -> Void
  ) throws(ListenAddress.ListenError) {
    descriptor = try address.listen()
    self.patience = patience
    self.uptime = uptime
    self.onHint = onHint
  }

  deinit { close(descriptor) }

  /// Runs until the task is canceled.
  package func run() async throws(ListenAddress.ListenError) {
    let (end, continuation) = AsyncStream.makeStream(of: Never.self)
    let hasStarted = detachThread { [self] in
      acceptAll()
      continuation.finish()
    }
    guard hasStarted else { throw .noThread }
    await withTaskCancellationHandler {
      // Wait for the thread, not for `end`: `end` finishes when this task is canceled, while the thread still uses the
      // socket.
      await Task { for await _ in end {} }.value
    } onCancel: {
      isOver.store(true, ordering: .releasing)
      // Wakes the thread that is blocked in `accept`.
      shutdown(descriptor, Int32(SHUT_RDWR))
    }
  }

  private func acceptAll() {
    var bucket = TokenBucket.ofHints
    while !isOver.load(ordering: .acquiring) {
      let caller = approval_linux_accept(descriptor)
      guard caller >= 0 else {
        // Out of descriptors or memory: wait and retry.
        usleep(100_000)
        continue
      }
      serve(caller, &bucket)
      close(caller)
    }
  }

  private func serve(_ caller: Int32, _ bucket: inout TokenBucket) {
    let end = uptime() + patience
    var status = PushPost.read(timeLeft: { end - uptime() }, read: { Self.read(caller, within: $0) })
    if status == .ok, !bucket.take(at: uptime()) { status = .tooMany }
    if status == .ok { onHint() }
    let response = Array(status.response.utf8)
    // The response fits into any socket buffer. A client that does not read it loses it.
    _ = send(caller, response, response.count, Int32(MSG_NOSIGNAL | MSG_DONTWAIT))
    shutdown(caller, Int32(SHUT_WR))
  }

  private static func read(_ caller: Int32, within limit: Duration) -> [UInt8]? {
    var watched = pollfd(fd: caller, events: Int16(POLLIN), revents: 0)
    guard poll(&watched, 1, limit.pollMilliseconds) > 0 else { return nil }
    var chunk = [UInt8](repeating: 0, count: 4096)
    let count = recv(caller, &chunk, chunk.count, Int32(MSG_DONTWAIT))
    return Array(chunk.prefix(max(count, 0)))
  }
}

private let start = ContinuousClock.now

/// The time since the first call in this process.
@Sendable package func sinceStart() -> Duration { ContinuousClock.now - start }
