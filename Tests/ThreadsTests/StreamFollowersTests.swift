// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import Glibc
import Synchronization
import Testing
import Threads

@Suite("Streams with the same elements", .timeLimit(.minutes(5))) struct StreamFollowersTests {
  private final class Owner: Sendable {
    let followers = Mutex(StreamFollowers<Int>())

    func stream(first: Int) -> AsyncStream<Int> {
      AsyncStream { continuation in followers.withLock { $0.add(continuation, first: first) } }
    }

    func send(_ element: Int) { followers.withLock { $0.send(element) } }
    var count: Int { followers.withLock { $0.count } }
  }

  private final class Flag: Sendable {
    private let value = Atomic(false)
    var isSet: Bool { value.load(ordering: .relaxed) }
    func set() { value.store(true, ordering: .relaxed) }
  }

  private let owner = Owner()

  @Test("Each stream gets its first element, and then the elements of all, in order") func order() async {
    let one = owner.stream(first: 10)
    owner.send(1)
    let other = owner.stream(first: 20)
    for element in 2...3 { owner.send(element) }
    var (ones, others) = (one.makeAsyncIterator(), other.makeAsyncIterator())
    for expected in [10, 1, 2, 3] { #expect(await ones.next() == expected) }
    for expected in [20, 2, 3] { #expect(await others.next() == expected) }
  }

  /// A follower, once it waits for its second element.
  private func waiting() async throws -> Task<Void, Never> {
    let hasBegun = Flag()
    let stream = owner.stream(first: 0)
    let task = Task { for await _ in stream { hasBegun.set() } }
    try await eventually("the first element") { hasBegun.isSet }
    return task
  }

  @Test("Streams that ended are removed at the next element, and at the next stream") func removal() async throws {
    for _ in 1...3 {
      let task = try await waiting()
      task.cancel()
      try await task.finished()
    }
    #expect(owner.count == 1)
    owner.send(1)
    #expect(owner.count == 0)
  }

  /// Fails if the end of a stream takes the owner's lock: a thread that yields to the stream can have it.
  @Test("The end of a stream does not wait for its owner") func endDuringSend() async throws {
    let task = try await waiting()
    let hasEnded = Flag()
    let owner = owner
    await withCheckedContinuation { continuation in
      _ = detachThread {
        owner.followers.withLock { _ in
          _ = detachThread {
            task.cancel()
            hasEnded.set()
          }
          for _ in 1...60_000 where !hasEnded.isSet { usleep(1000) }
        }
        continuation.resume()
      }
    }
    #expect(hasEnded.isSet)
  }
}
