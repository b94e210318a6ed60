// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import Synchronization
import Testing

@testable import TokenServerCore

@Suite(.timeLimit(.minutes(5)), .mayBlock) struct KeyedMutexTests {
  /// A log of the steps, in order.
  private final class CallLog: Sendable {
    let lines = Mutex<[String]>([])
    func note(_ line: String) { lines.withLock { $0.append(line) } }
  }

  @Test("One at a time for each key") func oneAtATimeForEachKey() async throws {
    let (keyedMutex, log) = (KeyedMutex(), CallLog())
    await withTaskGroup { group in
      for number in 1...50 {
        group.addTask {
          try? await keyedMutex.withLock("a") {
            log.note("in")
            for _ in 1...3 { await Task.yield() }
            log.note("out")
            if number % 7 == 0 { throw CancellationError() }
          }
        }
      }
    }
    let lines = log.lines.withLock { $0 }
    #expect(lines.count == 100)
    #expect(lines.indices.allSatisfy { lines[$0] == ($0 % 2 == 0 ? "in" : "out") })
  }

  @Test("More tasks than the limit are refused") func limit() async throws {
    let (keyedMutex, log) = (KeyedMutex(mostWaiting: 2), CallLog())
    @Sendable func attempt() async {
      do { try await keyedMutex.withLock("a") { log.note("ran") } } catch { log.note("refused") }
    }
    async let first: Void = keyedMutex.withLock("a") {
      log.note("first")
      try await eventually("a task is refused") { log.lines.withLock { $0 } == ["first", "refused"] }
    }
    try await eventually("the first task runs") { log.lines.withLock { $0 } == ["first"] }
    await withDiscardingTaskGroup { group in for _ in 1...3 { group.addTask { await attempt() } } }
    try await first
    #expect(log.lines.withLock { $0 } == ["first", "refused", "ran", "ran"])
  }

  @Test("Others do not wait") func othersDoNotWait() async throws {
    let keyedMutex = KeyedMutex()
    let inner = try await keyedMutex.withLock("a") { try await keyedMutex.withLock("b") { 7 } }
    #expect(inner == 7)
    let refused = try await keyedMutex.withLock("a") { try await keyedMutex.withLockIfFree("a") { 7 } }
    #expect(refused == nil)
    #expect(try await keyedMutex.withLockIfFree("a") { 7 } == 7)
  }
}
