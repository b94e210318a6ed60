// SPDX-License-Identifier: Apache-2.0
import Glibc
import Testing

@testable import Threads

/// The programs use these threads for all tasks; here only for the tasks that prefer them.
@Suite("Threads for tasks", .serialized, .timeLimit(.minutes(1))) struct TaskThreadsTests {
  #if compiler(>=6.3) && compiler(<6.4)
    private static let threads = TaskThreads()

    private func onThreads<Result: Sendable>(_ body: @Sendable () async -> Result) async -> Result {
      await withTaskExecutorPreference(Self.threads) { await body() }
    }

    private actor Sum {
      private(set) var value = 0
      func add(_ number: Int) { value += number }
    }

    @Test("All tasks run, with timers and actors") func runsAll() async {
      let sum = Sum()
      await onThreads {
        await withTaskGroup { group in
          for number in 1...1000 {
            group.addTask {
              if number % 7 == 0 { try? await Task.sleep(for: .milliseconds(number % 20)) }
              await sum.add(number)
            }
          }
        }
      }
      #expect(await sum.value == 500_500)
    }

    @Test("A timer is not early, and a canceled one ends") func timers() async {
      let elapsed = await onThreads {
        let start = ContinuousClock.now
        try? await Task.sleep(for: .milliseconds(50))
        return ContinuousClock.now - start
      }
      #expect(elapsed >= .milliseconds(50))
      await onThreads {
        let sleep = Task { try await Task.sleep(for: .seconds(3600)) }
        sleep.cancel()
        _ = await sleep.result
      }
    }

    /// Fails if a wait for storage beside a key derivation delays the LED.
    @Test("A task runs while all other threads are blocked") func blockedThreads() async {
      let gate = Gate()
      await onThreads {
        await withTaskGroup { group in
          for _ in 1..<TaskThreads.count { group.addTask { gate.wait() } }
          // Timers of the remaining thread.
          for _ in 0..<5 { try? await Task.sleep(for: .milliseconds(1)) }
          gate.open(for: TaskThreads.count - 1)
        }
      }
    }

    /// Fails if a timer wakes more than one thread.
    @Test("A timer wakes one thread") func wakeUps() async throws {
      let (before, after) = await onThreads {
        try? await Task.sleep(for: .milliseconds(50))
        let before = Self.wakeUps
        for _ in 0..<20 { try? await Task.sleep(for: .milliseconds(10)) }
        return (before, Self.wakeUps)
      }
      // A few more where the machine is busy.
      #expect((1...40).contains(after - before), "\(after - before) for 20 timers")
    }

    /// Voluntary context switches of these threads so far.
    private static var wakeUps: Int {
      (try? threadDirectories())?.reduce(0) { $0 + voluntarySwitches(of: $1) } ?? 0
    }

    private static func threadDirectories() throws -> [String] {
      guard let directory = opendir("/proc/self/task") else { return [] }
      defer { closedir(directory) }
      var found: [String] = []
      while let entry = readdir(directory) {
        let name = withUnsafeBytes(of: entry.pointee.d_name) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
        if lines(of: "/proc/self/task/\(name)/comm").first == "tasks" { found.append("/proc/self/task/\(name)") }
      }
      return found
    }

    private static func voluntarySwitches(of thread: String) -> Int {
      let line = lines(of: thread + "/status").first { $0.hasPrefix("voluntary_ctxt_switches:") }
      return line.flatMap { Int($0.split(whereSeparator: \.isWhitespace).last ?? "") } ?? 0
    }

    private static func lines(of file: String) -> [Substring] {
      guard let stream = fopen(file, "r") else { return [] }
      defer { fclose(stream) }
      var bytes = [UInt8](repeating: 0, count: 8192)
      let count = fread(&bytes, 1, bytes.count, stream)
      return String(decoding: bytes.prefix(count), as: UTF8.self).split(separator: "\n")
    }
  #endif
}

/// Blocks threads until it is opened.
private final class Gate: @unchecked Sendable {
  private let semaphore = UnsafeMutablePointer<sem_t>.allocate(capacity: 1)

  init() { sem_init(semaphore, 0, 0) }

  deinit {
    sem_destroy(semaphore)
    semaphore.deallocate()
  }

  func wait() { while sem_wait(semaphore) != 0 {} }
  func open(for count: Int) { for _ in 0..<count { sem_post(semaphore) } }
}
