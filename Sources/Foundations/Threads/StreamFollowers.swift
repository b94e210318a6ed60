// SPDX-License-Identifier: Apache-2.0
import Synchronization

/// The streams that get the same elements in the same order. A part of its owner's state, under the owner's lock.
///
/// Swift calls the termination handler of a stream while it holds a lock of the canceled task, and yielding an element
/// can wait for that lock. A handler that took the owner's lock could thus wait for a yield that waits for it. The
/// handler therefore only marks the stream; its owner removes it at the next element or stream.
package struct StreamFollowers<Element: Sendable>: Sendable {
  private final class Follower: Sendable {
    let continuation: AsyncStream<Element>.Continuation
    let hasEnded = Atomic(false)

    init(_ continuation: AsyncStream<Element>.Continuation) { self.continuation = continuation }
  }

  private var followers: [Follower] = []

  package init() {}

  /// Adds a stream, which gets the elements of `first` and then those of each `send`.
  package mutating func add(_ continuation: AsyncStream<Element>.Continuation, first: Element...) {
    add(continuation, first: first)
  }

  package mutating func add(_ continuation: AsyncStream<Element>.Continuation, first: [Element]) {
    removeEnded()
    let follower = Follower(continuation)
    continuation.onTermination = { [weak follower] _ in follower?.hasEnded.store(true, ordering: .relaxed) }
    for element in first { continuation.yield(element) }
    followers.append(follower)
  }

  package mutating func send(_ element: Element) {
    removeEnded()
    for follower in followers { follower.continuation.yield(element) }
  }

  /// Ends all streams.
  package mutating func finish() {
    for follower in followers { follower.continuation.finish() }
    followers = []
  }

  /// The number of streams, with those that ended since the last `add`, `send` or `removeEnded`.
  package var count: Int { followers.count }

  package mutating func removeEnded() { followers.removeAll { $0.hasEnded.load(ordering: .relaxed) } }
}
