import Synchronization

/// Something that changes now and then and can be waited for. A change between looking and waiting is not missed:
/// the waiter names the generation it has seen.
public final class Signal: Sendable {
  private struct State {
    var generation = 0
    var nextWaiter = 0
    var waiters: [Int: CheckedContinuation<Void, any Error>] = [:]
    var cancelledEarly: Set<Int> = []
  }

  private let state = Mutex(State())

  public init() {}

  /// Grows with every change.
  public var generation: Int { state.withLock { $0.generation } }

  public func raise() {
    let waiters = state.withLock { state in
      state.generation += 1
      defer { state.waiters = [:] }
      return state.waiters.values
    }
    for waiter in waiters { waiter.resume() }
  }

  /// Returns once the generation is beyond `seen`. Throws `CancellationError` when the task is cancelled.
  public func wait(beyond seen: Int) async throws {
    let number = state.withLock { state in
      state.nextWaiter += 1
      return state.nextWaiter
    }
    try await withTaskCancellationHandler {
      try await withCheckedThrowingContinuation { continuation in
        let immediate: Result<Void, any Error>? = state.withLock { state in
          if state.cancelledEarly.remove(number) != nil { return .failure(CancellationError()) }
          if state.generation > seen { return .success(()) }
          state.waiters[number] = continuation
          return nil
        }
        if let immediate { continuation.resume(with: immediate) }
      }
      state.withLock { _ = $0.cancelledEarly.remove(number) }
    } onCancel: {
      let waiter = state.withLock { state in
        let waiter = state.waiters.removeValue(forKey: number)
        if waiter == nil { state.cancelledEarly.insert(number) }
        return waiter
      }
      waiter?.resume(throwing: CancellationError())
    }
  }

  /// The same, but no longer than until `limit`.
  public func wait(beyond seen: Int, until limit: Moment, by timekeeper: any Timekeeper) async throws {
    try await withThrowingTaskGroup(of: Void.self) { group in
      defer { group.cancelAll() }
      group.addTask { try await self.wait(beyond: seen) }
      group.addTask { try await timekeeper.sleep(until: limit) }
      try await group.next()
    }
  }
}
