// SPDX-License-Identifier: Apache-2.0

// The interface of executors is not final in this version, so that others use the default executor.
#if compiler(>=6.3) && compiler(<6.4)
  import CLinux
  import Glibc
  import Synchronization
  @_spi(ExperimentalCustomExecutors) @_spi(ExperimentalScheduling) import _Concurrency

  /// The threads of all tasks of a program, in place of Swift's default executor: Dispatch wakes once per second to
  /// look after its threads, ends them 5 s after their last work, and uses two of them for each timer. These threads
  /// wake only for a task that can run or a timer that is due; a timer wakes one thread. A task runs on the thread that
  /// made it able to run, if nothing else waits: a change of threads costs time. A task that blocks its thread
  /// must therefore call `threadWillBlock` before.
  ///
  /// Timers do not advance while the machine is suspended, which boards are not.
  ///
  /// One idle thread waits for sockets and for the next timer; the others wait for work.
  final class TaskThreads: TaskExecutor, SchedulingExecutor, @unchecked Sendable {
    /// While two wait for storage and one derives a key, the LED has the fourth.
    static let count = 4
    /// In nanoseconds: a thread that begins a task leaves a timer without a thread that waits for it only if it is due
    /// later than this. Tasks that take longer announce it.
    private static let longestTask: Int64 = 20_000_000

    /// The runtime's name for no serial executor, for which Swift has no expression: two words that are 0. A task that
    /// runs there enters an actor that is free without a change of threads.
    private static let anyThread = unsafeBitCast((0, 0), to: UnownedSerialExecutor.self)

    /// One for each thread, which waits for it: to post it wakes exactly that thread, and needs no lock.
    private typealias Semaphore = UnsafeMutablePointer<sem_t>

    private enum Waiting {
      case forWork(Semaphore)
      case forEvents
    }

    /// How many threads wait for sockets and timers. One that was taken for a task, but has not left its wait yet,
    /// could still take the next interruption: no other thread may wait beside it.
    private enum Polling {
      case none, one, oneThatWasTaken
    }

    private let poller: SocketPoller
    private let lock = UnsafeMutablePointer<pthread_mutex_t>.allocate(capacity: 1)
    // Under the lock:
    private var jobs: [UnownedJob] = []
    private var timers = TimerQueue<UnownedJob>()
    private var members: [pthread_t] = []
    /// The threads that wait for work. The last one to wait is woken first: its stack is in the processor's cache.
    private var idle: [Semaphore] = []
    private var polling = Polling.none
    /// The number of threads that were woken and do not run yet. Each takes a task if there is one.
    private var waking = 0

    /// - Parameter poller: used by no other thread to wait.
    init(poller: SocketPoller) {
      self.poller = poller
      pthread_mutex_init(lock, nil)
      for _ in 0..<Self.count { LoopThread(named: "tasks") { self.work() }.detach() }
    }

    func enqueue(_ job: consuming ExecutorJob) {
      let job = UnownedJob(job)
      locked {
        jobs.append(job)
        // A task that makes another one able to run normally waits for it next: this thread then runs it.
        return jobs.count > waking + (isOwnThread ? 1 : 0) ? takeThread() : nil
      }
    }

    func enqueue<C: Clock>(_ job: consuming ExecutorJob, after delay: C.Duration, tolerance: C.Duration?, clock: C) {
      guard let delay = delay as? Duration else { fatalError("a timer with the clock \(C.self)") }
      let job = UnownedJob(job)
      locked {
        let isNext = timers.insert(job, due: Self.now.addingClamped(delay.clampedNanoseconds))
        guard isNext else { return nil }
        // Without a thread that waits for it, the calling thread does after its job, if it is one of these threads.
        return takePollingThread() ?? (isOwnThread ? nil : takeIdleThread())
      }
    }

    /// Lets another thread run what this one would run next, and wait for events.
    func handOver() { locked { takeSubstitute(mustPoll: true) } }

    // MARK: The threads

    private func work() {
      // `approval-tokend log | head` ends with its reader.
      var pipe = sigset_t()
      sigemptyset(&pipe)
      sigaddset(&pipe, SIGPIPE)
      pthread_sigmask(SIG_UNBLOCK, &pipe, nil)
      let semaphore = Semaphore.allocate(capacity: 1)
      sem_init(semaphore, 0, 0)
      let stack = UnusedStack()
      pthread_mutex_lock(lock)
      members.append(pthread_self())
      while true {
        if let job = timers.takeDue(at: Self.now) {
          run(job)
        } else if !jobs.isEmpty {
          run(jobs.removeFirst())
        } else if polling == .none {
          waitForEvents(stack)
        } else {
          waitForWork(at: semaphore, stack)
        }
      }
    }

    /// Releases the lock while the job runs.
    private func run(_ job: UnownedJob) {
      let isTimerNear = timers.next.map { $0 < Self.now.addingClamped(Self.longestTask) } ?? false
      let other = takeSubstitute(mustPoll: isTimerNear)
      pthread_mutex_unlock(lock)
      if let other { wake(other) }
      job.runSynchronously(on: Self.anyThread)
      pthread_mutex_lock(lock)
    }

    private func waitForEvents(_ stack: UnusedStack) {
      polling = .one
      let next = timers.next
      pthread_mutex_unlock(lock)
      stack.discard()
      let ready = poller.waitOnce(atMost: next.map { max(0, $0 - Self.now) })
      pthread_mutex_lock(lock)
      if polling == .oneThatWasTaken { waking -= 1 }
      polling = .none
      guard !ready.isEmpty else { return }
      pthread_mutex_unlock(lock)
      for resumption in ready { resumption.resume() }
      pthread_mutex_lock(lock)
    }

    private func waitForWork(at semaphore: Semaphore, _ stack: UnusedStack) {
      idle.append(semaphore)
      pthread_mutex_unlock(lock)
      stack.discard()
      sem_wait(semaphore)
      pthread_mutex_lock(lock)
      // Still there if a signal has interrupted the wait.
      if let index = idle.firstIndex(of: semaphore) { idle.remove(at: index) } else { waking -= 1 }
    }

    /// Returns a waiting thread for what the calling thread does not do while it runs a task: to run the next one, or,
    /// if `mustPoll`, to wait for events; nil for none. It must be woken.
    private func takeSubstitute(mustPoll: Bool) -> Waiting? {
      if jobs.count > waking { return takeThread() }
      return mustPoll && polling == .none && waking == 0 ? takeIdleThread() : nil
    }

    /// Returns a waiting thread that could run a task, preferably not the one that waits for events; nil for none. It
    /// must be woken.
    private func takeThread() -> Waiting? { takeIdleThread() ?? takePollingThread() }

    private func takeIdleThread() -> Waiting? {
      guard let thread = idle.popLast() else { return nil }
      waking += 1
      return .forWork(thread)
    }

    private func takePollingThread() -> Waiting? {
      guard polling == .one else { return nil }
      polling = .oneThatWasTaken
      waking += 1
      return .forEvents
    }

    private func wake(_ thread: Waiting) {
      switch thread {
      case .forWork(let semaphore): sem_post(semaphore)
      case .forEvents: poller.interrupt()
      }
    }

    private var isOwnThread: Bool { members.contains { pthread_equal($0, pthread_self()) != 0 } }

    /// - Parameter body: returns the thread to wake. That is done without the lock, which the woken thread needs.
    private func locked(_ body: () -> Waiting?) {
      pthread_mutex_lock(lock)
      let thread = body()
      pthread_mutex_unlock(lock)
      if let thread { wake(thread) }
    }

    /// Nanoseconds of the monotonic clock.
    private static var now: Int64 {
      var time = timespec()
      clock_gettime(CLOCK_MONOTONIC, &time)
      return Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
    }
  }

  /// The main actor keeps the default executor; the programs of the token have no code for it.
  struct TaskThreadsFactory: ExecutorFactory {
    static let threads = TaskThreads(poller: .shared)

    static var mainExecutor: any MainExecutor { PlatformExecutorFactory.mainExecutor }
    static var defaultExecutor: any TaskExecutor { threads }
  }

  private let areInUse = Atomic(false)

  /// Must be called before the first task is made.
  func useTaskThreads() {
    areInUse.store(true, ordering: .releasing)
    _createExecutors(factory: TaskThreadsFactory.self)
  }

  /// Must be called before a task keeps its thread for longer than some milliseconds: for storage, or to make a key.
  package func threadWillBlock() {
    if tasksHaveOwnThreads() { TaskThreadsFactory.threads.handOver() }
  }

  func tasksHaveOwnThreads() -> Bool { areInUse.load(ordering: .acquiring) }
#else
  /// Keeps the default executor.
  func useTaskThreads() {}

  func tasksHaveOwnThreads() -> Bool { false }

  /// The default executor has threads for all tasks.
  package func threadWillBlock() {}
#endif

extension Duration {
  /// Rounded up, not negative.
  var clampedNanoseconds: Int64 {
    let (seconds, attoseconds) = components
    let (product, overflow) = seconds.multipliedReportingOverflow(by: 1_000_000_000)
    return overflow ? .max : max(0, product.addingClamped((attoseconds + 999_999_999) / 1_000_000_000))
  }
}

extension Int64 {
  fileprivate func addingClamped(_ other: Int64) -> Int64 {
    let (sum, overflow) = addingReportingOverflow(other)
    return overflow ? .max : sum
  }
}
