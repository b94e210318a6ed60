// SPDX-License-Identifier: Apache-2.0
import Synchronization

/// A mutex per key, first come, first served. A task that waits is not ended with its client's connection, so that the
/// number of those that wait for one key has a limit.
package final class KeyedMutex: Sendable {
  /// As many tasks as may be are waiting for the key.
  package struct TooManyWaitingError: Error {
    package init() {}
  }

  private typealias Waiting = [CheckedContinuation<Bool, Never>]

  /// A key is present while a task holds it.
  private let waiting = Mutex<[String: Waiting]>([:])

  private let mostWaiting: Int

  /// - Parameter mostWaiting: for one key.
  package init(mostWaiting: Int = 64) { self.mostWaiting = mostWaiting }

  /// - Throws: `TooManyWaitingError`; the error of `body`.
  package func withLock<Value: Sendable>(
    _ key: String, _ body: @Sendable () async throws -> Value
  ) async throws -> Value {
    guard await enter(key) else { throw TooManyWaitingError() }
    defer { leave(key) }
    return try await body()
  }

  /// As `withLock`, but without waiting.
  /// - Returns: nil if another task holds the key; `body` has not run then.
  @discardableResult
  package func withLockIfFree<Value: Sendable>(
    _ key: String, _ body: @Sendable () async throws -> Value
  ) async throws -> Value? {
    guard take(key) == true else { return nil }
    defer { leave(key) }
    return try await body()
  }

  /// - Returns: whether the key is held now; false if too many wait.
  private func enter(_ key: String) async -> Bool {
    await withCheckedContinuation { continuation in
      if let isHeld = take(key, orWait: continuation) { continuation.resume(returning: isHeld) }
    }
  }

  /// - Parameter continuation: resumed when the key is passed on to it; nil does not wait.
  /// - Returns: whether the key was free, and is now held; nil if `continuation` waits.
  private func take(_ key: String, orWait continuation: CheckedContinuation<Bool, Never>? = nil) -> Bool? {
    waiting.withLock { waiting in
      guard let others = waiting[key] else {
        waiting[key] = []
        return true
      }
      guard let continuation, others.count < mostWaiting else { return false }
      waiting[key]?.append(continuation)
      return nil
    }
  }

  private func leave(_ key: String) {
    let next = waiting.withLock { waiting -> CheckedContinuation<Bool, Never>? in
      guard waiting[key]?.isEmpty == false else {
        waiting[key] = nil
        return nil
      }
      return waiting[key]?.removeFirst()
    }
    next?.resume(returning: true)
  }
}
