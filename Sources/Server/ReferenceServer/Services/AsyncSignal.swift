// SPDX-License-Identifier: Apache-2.0
/// Lets one task sleep until a time or a signal, whichever comes first. A signal while the task is awake is not lost;
/// several signals count as one.
final class AsyncSignal: Sendable {
  private let rings: AsyncStream<Void>
  private let bell: AsyncStream<Void>.Continuation

  init() { (rings, bell) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(1)) }

  func ring() { bell.yield() }

  /// - Parameter duration: nil to wait for a signal only.
  /// - Returns: immediately if the task is canceled.
  func wait(for duration: Duration?) async {
    let alarm = duration.map { duration in
      Task {
        try await Task.sleep(for: max(.zero, duration))
        ring()
      }
    }
    defer { alarm?.cancel() }
    for await _ in rings { return }
  }
}

/// Runs `body`, and waits for it at most half a second: at the end of a service the database may be out of reach.
func lastAttempt(_ body: @escaping @Sendable () async -> Void) async {
  let done = AsyncSignal()
  Task {
    await body()
    done.ring()
  }
  await done.wait(for: .milliseconds(500))
}
