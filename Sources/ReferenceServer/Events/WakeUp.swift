/// Lets one task sleep until a moment or until somebody rings, whichever is first. Rings while it is awake are not
/// lost; many count as one.
final class WakeUp: Sendable {
  private let rings: AsyncStream<Void>
  private let bell: AsyncStream<Void>.Continuation

  init() { (rings, bell) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(1)) }

  func ring() { bell.yield() }

  /// - Parameter milliseconds: nil to wait for a ring alone.
  /// - Returns: at once when the task is cancelled.
  func wait(milliseconds: Int64?) async {
    let alarm = milliseconds.map { milliseconds in
      Task {
        try await Task.sleep(for: .milliseconds(max(0, milliseconds)))
        ring()
      }
    }
    defer { alarm?.cancel() }
    for await _ in rings { return }
  }
}
