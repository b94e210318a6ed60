// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import Glibc
import Testing

@testable import Threads

/// The programs use these threads for all tasks; here only for the tasks that prefer them.
@Suite("Threads for tasks", .serialized, .timeLimit(.minutes(5))) struct TaskThreadsTests {
  #if compiler(>=6.3) && compiler(<6.4)
    private static let poller = SocketPoller()
    private static let threads = TaskThreads(poller: poller)

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
      let opened = await onThreads {
        await withTaskGroup { group in
          for _ in 1..<TaskThreads.count { group.addTask { gate.wait() } }
          // Timers of the remaining thread.
          for _ in 0..<5 { try? await Task.sleep(for: .milliseconds(1)) }
          gate.open(for: TaskThreads.count - 1)
          return await group.allSatisfy { $0 }
        }
      }
      #expect(opened)
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

    /// Fails if each step of a task that another task waits for changes the thread.
    @Test("Tasks that wait for each other share a thread") func handOffs() async {
      let before = await onThreads { Self.wakeUps }
      await onThreads {
        for _ in 0..<200 {
          let (numbers, sender) = AsyncStream.makeStream(of: Int.self)
          async let sum = numbers.reduce(0, +)
          for number in 0..<5 { sender.yield(number) }
          sender.finish()
          #expect(await sum == 10)
        }
      }
      let switches = await onThreads { Self.wakeUps } - before
      #expect(switches < 100, "\(switches) for 200 tasks")
    }

    /// Fails if what a task makes able to run waits for the end of a wait for storage.
    @Test("A task that announces that it blocks delays no other") func announcedBlocking() async {
      let gate = Gate()
      await onThreads {
        await withTaskGroup { group in
          group.addTask { gate.open(for: 1) }
          Self.threads.handOver()
          #expect(gate.wait(), "the other task did not run")
        }
      }
    }

    /// Two connected sockets of which nothing must be waited for to write.
    private struct SocketPair {
      let (near, far): (Int32, Int32)

      init() throws {
        var descriptors: [Int32] = [-1, -1]
        try #require(socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0, &descriptors) == 0)
        (near, far) = (descriptors[0], descriptors[1])
      }

      func send() { Glibc.send(near, "x", 1, 0) }

      /// - Returns: false if nothing was sent within a minute.
      func receive() async -> Bool {
        guard await TaskThreadsTests.poller.wait(for: far, .reading, until: .now + .seconds(60)) == .ready else {
          return false
        }
        var byte: UInt8 = 0
        return recv(far, &byte, 1, 0) == 1
      }

      func close() {
        Glibc.close(near)
        Glibc.close(far)
      }
    }

    /// Fails if a thread that waits for sockets wakes another one for the task.
    @Test("What arrives at a socket wakes one thread") func socketWakeUps() async throws {
      let sockets = try SocketPair()
      defer { sockets.close() }
      let before = await onThreads { Self.wakeUps }
      async let received = onThreads {
        var count = 0
        while count < 40, await sockets.receive() { count += 1 }
        return count
      }
      for _ in 0..<40 {
        sockets.send()
        try await Task.sleep(for: .milliseconds(5))
      }
      #expect(await received == 40)
      let after = await onThreads { Self.wakeUps }
      // A few more where the machine is busy.
      #expect((1...70).contains(after - before), "\(after - before) for 40 bytes")
    }

    /// Fails if the thread that waits for sockets is missing while it runs a task that blocks.
    @Test("A socket is read while tasks block that a socket has woken") func socketsBesideBlocking() async throws {
      let gate = Gate()
      let pairs = [try SocketPair(), try SocketPair(), try SocketPair()]
      defer { for pair in pairs { pair.close() } }
      let allRan = await onThreads {
        await withTaskGroup { group in
          for pair in pairs.dropLast() {
            group.addTask {
              guard await pair.receive() else { return false }
              Self.threads.handOver()
              return gate.wait()
            }
          }
          group.addTask {
            guard await pairs[2].receive() else { return false }
            gate.open(for: 2)
            return true
          }
          for pair in pairs { pair.send() }
          return await group.allSatisfy { $0 }
        }
      }
      #expect(allRan)
    }

    /// Fails if a thread that is taken from its wait for sockets can be forgotten there.
    @Test("Tasks that wait for sockets, for timers and for each other all go on") func mixedWaits() async throws {
      let pairs = try (0..<16).map { _ in try SocketPair() }
      defer { for pair in pairs { pair.close() } }
      let allArrived = await onThreads {
        await withTaskGroup { group in
          for pair in pairs {
            let (turns, turn) = AsyncStream.makeStream(of: Int.self)
            group.addTask {
              for number in 0..<300 {
                guard await pair.receive() else { return false }
                if number.isMultiple(of: 2) { try? await Task.sleep(for: .microseconds(50 * (number % 5))) }
                turn.yield(number)
              }
              turn.finish()
              return true
            }
            group.addTask {
              pair.send()
              for await number in turns where number < 299 { pair.send() }
              return true
            }
          }
          return await group.allSatisfy { $0 }
        }
      }
      #expect(allArrived)
      // Nothing else would wake a thread for these.
      for _ in 0..<5 {
        try await Task.sleep(for: .milliseconds(20))
        #expect(await onThreads { true })
      }
    }

    @Test("A wait for a socket ends at its deadline, and when its task is canceled") func endsOfWaits() async throws {
      let sockets = try SocketPair()
      defer { sockets.close() }
      let elapsed = await onThreads {
        let start = ContinuousClock.now
        #expect(await Self.poller.wait(for: sockets.far, .reading, until: start + .milliseconds(30)) == .timedOut)
        return ContinuousClock.now - start
      }
      #expect(elapsed >= .milliseconds(30))
      let waiting = Task { await onThreads { await Self.poller.wait(for: sockets.far, .reading) } }
      waiting.cancel()
      #expect(try await waiting.finished() == .canceled)
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

  /// - Returns: false if it was not opened within a minute.
  func wait() -> Bool {
    var deadline = timespec()
    clock_gettime(CLOCK_REALTIME, &deadline)
    deadline.tv_sec += 60
    while sem_timedwait(semaphore, &deadline) != 0 { if errno != EINTR { return false } }
    return true
  }

  func open(for count: Int) { for _ in 0..<count { sem_post(semaphore) } }
}
