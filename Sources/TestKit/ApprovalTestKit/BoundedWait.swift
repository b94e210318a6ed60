// SPDX-License-Identifier: Apache-2.0
import Synchronization
import Testing

/// A suspended task that waits for an event, at most until a limit of real time, or until the task is canceled. At the
/// limit the test fails with an issue that names the missing event, and the task continues, so that nothing hangs.
final class BoundedWait: Sendable {
  private let continuation: Mutex<CheckedContinuation<Void, Never>?>

  private init(_ continuation: CheckedContinuation<Void, Never>) { self.continuation = Mutex(continuation) }

  /// Ends the wait. Has no effect on a wait that has ended.
  func resume() { take()?.resume() }

  private func take() -> CheckedContinuation<Void, Never>? {
    continuation.withLock { continuation in
      defer { continuation = nil }
      return continuation
    }
  }

  /// - Parameters:
  ///   - what: names the event in the line on standard error.
  ///   - begin: called at most once, before the caller is suspended. It must arrange for a later call of `resume()`.
  static func wait(
    for what: @escaping @Sendable () -> String, within limit: Duration = .seconds(60), _ begin: (BoundedWait) -> Void
  ) async {
    let alarm = Mutex(Task<Void, Never>?.none)
    let begun = Mutex((wait: BoundedWait?.none, isCanceled: false))
    await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        let wait = BoundedWait(continuation)
        alarm.withLock {
          $0 = Task {
            try? await Task.sleep(for: limit)
            guard !Task.isCancelled, let late = wait.take() else { return }
            Issue.record("not within \(limit): \(what())")
            late.resume()
          }
        }
        let isCanceled = begun.withLock { state in
          state.wait = wait
          return state.isCanceled
        }
        if isCanceled { wait.resume() } else { begin(wait) }
      }
    } onCancel: {
      let wait = begun.withLock { state in
        state.isCanceled = true
        return state.wait
      }
      wait?.resume()
    }
    alarm.withLock { $0?.cancel() }
  }
}
