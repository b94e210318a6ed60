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

  private func enter(_ key: String) async {
    await withCheckedContinuation { continuation in
      let isFree = waiting.withLock { waiting in
        guard waiting[key] != nil else {
          waiting[key] = []
          return true
        }
        waiting[key]?.append(continuation)
        return false
      }
      if isFree { continuation.resume() }
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
