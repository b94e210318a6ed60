// SPDX-License-Identifier: Apache-2.0
import CLinux
import Glibc
import Synchronization
import Threads

/// Waits for sockets of all tasks on one thread. The thread wakes only when a socket is ready or a deadline is over.
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

  private struct State {
    var waiters: [Key: Waiter] = [:]
    /// When the thread wakes by itself; nil if it does not.
    var alarm: ContinuousClock.Instant?
  }

  /// The poller of this process. Its thread starts with the first use, and ends with the process.
  package static let shared = SocketPoller()

  private let poller: Int32
  /// An eventfd that ends the thread's wait.
  private let interrupt: Int32
  private let state = Mutex(State())

  private init() {
    var interrupt: Int32 = -1
    poller = approval_linux_poller_make(&interrupt)
    self.interrupt = interrupt
    guard poller >= 0 else { fatalError("no descriptor is left to wait for sockets: errno \(errno)") }
    LoopThread(named: "relay") { self.run() }.detach()
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
          if let due, state.alarm.map({ due < $0 }) ?? true { eventfd_write(interrupt, 1) }
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

  private func run() {
    while true {
      let timeout = state.withLock { state -> Int32 in
        state.alarm = state.waiters.values.compactMap(\.due).min()
        return state.alarm.map { Int32(clamping: ($0 - .now).wholeMilliseconds) } ?? -1
      }
      let event = approval_linux_poller_next(poller, interrupt, timeout)
      let done = state.withLock { state -> [(Waiter, Outcome)] in
        var done = takeReady(event, &state)
        for (key, waiter) in state.waiters where waiter.due.map({ $0 <= .now }) ?? false {
          state.waiters[key] = nil
          done.append((waiter, .timedOut))
        }
        return done
      }
      for (waiter, outcome) in done { waiter.continuation.resume(returning: outcome) }
    }
  }

  private func takeReady(_ event: approval_linux_poller_event, _ state: inout State) -> [(Waiter, Outcome)] {
    guard event.descriptor >= 0 else { return [] }
    var ready: [(Waiter, Outcome)] = []
    for (direction, isReady) in [(Direction.reading, event.is_readable), (.writing, event.is_writable)] {
      guard isReady != 0,
        let waiter = state.waiters.removeValue(forKey: Key(descriptor: event.descriptor, direction: direction))
      else { continue }
      ready.append((waiter, .ready))
    }
    // The event has ended the watch, also for the other direction.
    _ = arm(event.descriptor, state)
    return ready
  }
}

extension Duration {
  /// Rounded up and never negative, so that a sleep of this length does not end early.
  fileprivate var wholeMilliseconds: Int64 {
    let (seconds, attoseconds) = components
    let (milliseconds, overflow) = seconds.multipliedReportingOverflow(by: 1000)
    return overflow ? .max : max(0, milliseconds + (attoseconds + 999_999_999_999_999) / 1_000_000_000_000_000)
  }
}
