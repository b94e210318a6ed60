// SPDX-License-Identifier: Apache-2.0
import CLinux
import Glibc
import Synchronization

/// Waits for sockets of all tasks on one thread. The thread wakes only when a socket is ready or a deadline is over.
/// In a program whose tasks run on `TaskThreads`, an idle one of them waits, and then runs the task: to wake another
/// thread for it costs time.
package final class SocketPoller: Sendable {
  package enum Outcome: Sendable, Equatable {
    case ready, timedOut, canceled
    /// The kernel cannot watch the socket.
    case failed(errno: Int32)
  }

  package enum Direction: Hashable, Sendable { case reading, writing }

  private struct Key: Hashable {
    let descriptor: Int32
    let direction: Direction
  }

  private struct Waiter {
    let due: ContinuousClock.Instant?
    let continuation: CheckedContinuation<Outcome, Never>
  }

  /// A task whose wait is over.
  struct Resumption {
    fileprivate let continuation: CheckedContinuation<Outcome, Never>
    fileprivate let outcome: Outcome

    func resume() { continuation.resume(returning: outcome) }
  }

  private struct State {
    var waiters: [Key: Waiter] = [:]
    /// When the thread wakes for a deadline; nil if it does not.
    var alarm: ContinuousClock.Instant?
  }

  /// The poller of this process. Its thread, if it has its own, starts with the first use and ends with the process.
  package static let shared = {
    let poller = SocketPoller()
    if !tasksHaveOwnThreads() {
      LoopThread(named: "relay") { while true { for ready in poller.waitOnce(atMost: nil) { ready.resume() } } }
        .detach()
    }
    return poller
  }()

  private let poller: Int32
  /// An eventfd that ends the thread's wait.
  private let interruption: Int32
  private let state = Mutex(State())

  init() {
    var interruption: Int32 = -1
    poller = approval_linux_poller_make(&interruption)
    self.interruption = interruption
    guard poller >= 0 else { fatalError("no descriptor is left to wait for sockets: errno \(errno)") }
  }

  /// Waits until the socket can be read or written, or was closed by its peer. At most one task may wait for each
  /// direction of a socket.
  package func wait(
    for descriptor: Int32, _ direction: Direction, until due: ContinuousClock.Instant? = nil
  ) async -> Outcome {
    let key = Key(descriptor: descriptor, direction: direction)
    return await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        let outcome = state.withLock { state -> Outcome? in
          // The handler below runs after this flag is set, so that it finds the waiter.
          if Task.isCancelled { return .canceled }
          precondition(state.waiters[key] == nil, "two tasks wait for one direction of a socket")
          state.waiters[key] = Waiter(due: due, continuation: continuation)
          guard arm(descriptor, state) else {
            let number = errno
            state.waiters[key] = nil
            return .failed(errno: number)
          }
          if let due, state.alarm.map({ due < $0 }) ?? true { interrupt() }
          return nil
        }
        if let outcome { continuation.resume(returning: outcome) }
      }
    } onCancel: {
      state.withLock { $0.waiters.removeValue(forKey: key) }?.continuation.resume(returning: .canceled)
    }
  }

  /// Watches the socket for its present waiters.
  /// - Returns: false if it cannot be watched; reading or writing it then says why.
  private func arm(_ descriptor: Int32, _ state: State) -> Bool {
    func isWaiting(_ direction: Direction) -> Int32 {
      state.waiters[Key(descriptor: descriptor, direction: direction)] == nil ? 0 : 1
    }
    return approval_linux_poller_watch(poller, descriptor, isWaiting(.reading), isWaiting(.writing)) == 0
  }

  /// Ends the present call of `waitOnce`, or the next one. Any thread.
  func interrupt() { eventfd_write(interruption, 1) }

  /// Waits until a socket is ready, a deadline is over, or the time is up. Can return earlier. Only one thread may call
  /// it at a time.
  /// - Parameter nanoseconds: 0 or more; nil for no limit.
  /// - Returns: the tasks that must be resumed.
  func waitOnce(atMost nanoseconds: Int64?) -> [Resumption] {
    let timeout = state.withLock { state -> Int64? in
      state.alarm = state.waiters.values.compactMap(\.due).min()
      let untilAlarm = state.alarm.map { ($0 - .now).clampedNanoseconds }
      return [nanoseconds, untilAlarm].compactMap(\.self).min()
    }
    let event = approval_linux_poller_next(poller, interruption, timeout ?? -1)
    return state.withLock { state in
      var ended = takeReady(event, &state)
      guard let alarm = state.alarm, alarm <= .now else { return ended }
      for (key, waiter) in state.waiters where waiter.due.map({ $0 <= .now }) ?? false {
        state.waiters[key] = nil
        ended.append(Resumption(continuation: waiter.continuation, outcome: .timedOut))
      }
      return ended
    }
  }

  private func takeReady(_ event: approval_linux_poller_event, _ state: inout State) -> [Resumption] {
    guard event.descriptor >= 0 else { return [] }
    var ready: [Resumption] = []
    for (direction, isReady) in [(Direction.reading, event.is_readable), (.writing, event.is_writable)] {
      guard isReady != 0,
        let waiter = state.waiters.removeValue(forKey: Key(descriptor: event.descriptor, direction: direction))
      else { continue }
      ready.append(Resumption(continuation: waiter.continuation, outcome: .ready))
    }
    // The event has ended the watch, also for the other direction.
    _ = arm(event.descriptor, state)
    return ready
  }
}
