// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import Dispatch
import Synchronization
import Testing
import Threads

@testable import TokenServerStore

/// The queue of PostgreSQL's threads, each of which opens a connection with its first job.
@Suite(.timeLimit(.minutes(5)), .mayBlock) final class JobQueueTests: Sendable {
  private let queue = JobQueue<Int>(limit: 3)
  private let used = Mutex<[Int]>([])
  private let ended = DispatchSemaphore(value: 0)

  /// - Returns: threads that take jobs until the queue ends.
  private func start(_ count: Int) -> [LoopThread] {
    (0..<count).map { [queue, ended] number in
      LoopThread(named: "jobs") {
        let thread = DispatchSemaphore(value: 0)
        while let job = queue.next(for: thread) { job(number) }
        ended.signal()
      }
    }
  }

  private func join(_ threads: [LoopThread]) throws {
    for _ in threads {
      let hasEnded = ended.wait(timeout: .now() + 60) == .success
      try #require(hasEnded, "each thread must end within 60 s")
    }
    for thread in threads { thread.join() }
  }

  @Test("One job after the other is done by one thread") func one() async throws {
    let threads = start(4)
    for _ in 0..<10 {
      try await eventually("all threads wait") { queue.idleThreads == 4 }
      #expect(queue.add { number in self.used.withLock { $0.append(number) } })
    }
    try await eventually("all threads wait") { queue.idleThreads == 4 }
    queue.end()
    try join(threads)
    used.withLock { #expect($0.count == 10 && Set($0).count == 1) }
  }

  @Test("Jobs that wait are done before the end, in their order, and no more are taken") func end() throws {
    for number in 1...3 { #expect(queue.add { _ in self.used.withLock { $0.append(number) } }) }
    #expect(!queue.add { _ in })
    queue.end()
    #expect(!queue.add { _ in })
    try join(start(1))
    used.withLock { #expect($0 == [1, 2, 3]) }
    #expect(queue.count == 0)
  }

  @Test("Jobs at the same time have a thread each") func together() async throws {
    let threads = start(3)
    let gate = DispatchSemaphore(value: 0)
    for _ in 0..<3 {
      let isAdded = queue.add { number in
        self.used.withLock { $0.append(number) }
        gate.wait()
      }
      #expect(isAdded)
    }
    try await eventually("three threads have a job") { used.withLock { Set($0).count == 3 } }
    for _ in 0..<3 { gate.signal() }
    queue.end()
    try join(threads)
  }
}
