// SPDX-License-Identifier: Apache-2.0
import Synchronization

/// A mutex per key, first come, first served.
package final class KeyedMutex: Sendable {
  private typealias Waiting = [CheckedContinuation<Void, Never>]

  /// A key is present while a task holds it.
  private let waiting = Mutex<[String: Waiting]>([:])

  package init() {}

  package func withLock<Value: Sendable>(
    _ key: String, _ body: @Sendable () async throws -> Value
  ) async throws -> Value {
    await enter(key)
    defer { leave(key) }
    return try await body()
  }

  /// As `withLock`, but without waiting.
  /// - Returns: nil if another task holds the key; `body` has not run then.
  @discardableResult
  package func withLockIfFree<Value: Sendable>(
    _ key: String, _ body: @Sendable () async throws -> Value
  ) async throws -> Value? {
    guard take(key) else { return nil }
    defer { leave(key) }
    return try await body()
  }

  private func enter(_ key: String) async {
    await withCheckedContinuation { continuation in if take(key, orWait: continuation) { continuation.resume() } }
  }

  /// - Parameter continuation: resumed when the key is passed on to it; nil does not wait.
  /// - Returns: whether the key was free, and is now held.
  private func take(_ key: String, orWait continuation: CheckedContinuation<Void, Never>? = nil) -> Bool {
    waiting.withLock { waiting in
      guard waiting[key] != nil else {
        waiting[key] = []
        return true
      }
      if let continuation { waiting[key]?.append(continuation) }
      return false
    }
  }

  private func leave(_ key: String) {
    let next = waiting.withLock { waiting -> CheckedContinuation<Void, Never>? in
      guard waiting[key]?.isEmpty == false else {
        waiting[key] = nil
        return nil
      }
      return waiting[key]?.removeFirst()
    }
    next?.resume()
  }
}
