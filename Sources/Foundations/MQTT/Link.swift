// SPDX-License-Identifier: Apache-2.0
import CMosquitto
import Glibc
import Synchronization
import Threads

/// An event of a connection's thread for the task that waits for it.
enum LinkEvent: Sendable {
  /// Connected and, if there are topics, subscribed to one.
  case up
  case subscribed(String)
  /// The broker does not permit reading the topic; others are read.
  case mayNotRead(String)
  /// A message of a topic. The thread waits until `acknowledge` is called.
  case message([UInt8], from: String)
  /// A message of this number of bytes was rejected and is lost.
  case oversize(Int)
  /// The broker has acknowledged or rejected a message.
  case published(Post, isAccepted: Bool)
  /// The connection has ended. The last event.
  case ended(BrokerError)
}

/// A message to publish.
struct Post: Sendable, Hashable {
  var topic: String
  var payload: [UInt8]
  var isRetained = false
}

/// One connection to a broker with its own thread, and the communication between that thread and one task.
final class Link: Sendable {
  private struct Shared {
    var events: [LinkEvent] = []
    var waiter: CheckedContinuation<LinkEvent, Never>?
    var posts: [Post] = []
    var isTaken: Bool?
    var isClosed = false
    var hasEnded = false
    /// The plan of the attempt while the thread is in a call that cannot be interrupted: name resolution or a TCP
    /// connect.
    var attempt: Int?
    var thread: LoopThread?
  }

  let session: Session
  /// An eventfd. Readable when the thread must check the shared state.
  let wakeUp: Int32
  private let shared = Mutex(Shared())

  init(_ session: Session) {
    self.session = session
    wakeUp = approval_mqtt_new_wake_up()
  }

  deinit { Glibc.close(wakeUp) }

  // MARK: The task's side

  func start() {
    // The thread also takes this lock before it does anything that `close` must know.
    shared.withLock { shared in
      shared.thread = LoopThread(named: "mqtt") { [self] in put(.ended(LinkLoop(self).run())) }
    }
  }

  /// The next event. After `.ended` the thread has ended, or will end when its blocking call returns.
  func next() async -> LinkEvent {
    let event = await withCheckedContinuation { continuation in
      let event = shared.withLock { shared -> LinkEvent? in
        if !shared.events.isEmpty { return shared.events.removeFirst() }
        shared.waiter = continuation
        return nil
      }
      if let event { continuation.resume(returning: event) }
    }
    // The process may exit afterwards and must not free OpenSSL's data while the thread uses it.
    if case .ended = event { shared.withLock { $0.thread.take() }?.join() }
    return event
  }

  /// Lets the thread continue after a message.
  func acknowledge(isTaken: Bool) { notify { $0.isTaken = isTaken } }

  func publish(_ post: Post) { notify { $0.posts.append(post) } }

  /// Ends the connection. Thread-safe and idempotent.
  func close() {
    notify { $0.isClosed = true }
    endIfStuck(because: .closed)
  }

  /// Ends the connection if its thread is in a call that cannot be interrupted. The thread ends after that call.
  private func endIfStuck(because reason: BrokerError) {
    let (attempt, thread) = shared.withLock { shared -> (Int?, LoopThread?) in
      guard let attempt = shared.attempt else { return (nil, nil) }
      shared.isClosed = true
      return (attempt, shared.thread.take())
    }
    guard let attempt, let thread else { return }
    Attempts.noteAbandoned()
    if reason != .closed { Attempts.noteTimeOut(of: attempt) }
    thread.detach()
    put(.ended(reason))
  }

  private func notify(_ change: (inout Shared) -> Void) {
    shared.withLock { change(&$0) }
    eventfd_write(wakeUp, 1)
  }

  // MARK: The thread's side

  var isClosed: Bool { shared.withLock { $0.isClosed } }

  /// Removes and returns the messages to publish.
  func takePosts() -> [Post] {
    shared.withLock { shared in
      defer { shared.posts = [] }
      return shared.posts
    }
  }

  /// Runs a call that cannot be interrupted, unless the connection is already closed. The connection does not wait for
  /// its end beyond the time limit of its plan.
  func stuck(in work: (Attempts.Plan) throws(BrokerError) -> Void) throws(BrokerError) {
    let attempt = try Attempts.begin()
    let plan = Attempts.plans[attempt]
    let mayStart = shared.withLock { shared in
      if !shared.isClosed { shared.attempt = attempt }
      return !shared.isClosed
    }
    guard mayStart else { throw .closed }
    let alarm = Task { [weak self, session] in
      try await Task.sleep(for: session.setUpLimit * plan.patience)
      self?.endIfStuck(because: session.lateness(after: plan.patience))
    }
    var failure: BrokerError?
    do { try work(plan) } catch { failure = error }
    alarm.cancel()
    let isAbandoned = shared.withLock { shared in
      shared.attempt = nil
      return shared.thread == nil
    }
    // What ends long after its time limit does not count: later attempts have shown which addresses respond.
    switch (isAbandoned, failure) {
    case (true, _): Attempts.noteEndOfAbandoned()
    case (false, .some): Attempts.noteFailure(of: attempt)
    case (false, .none): Attempts.noteConnection(by: attempt)
    }
    if let failure { throw failure }
  }

  func put(_ event: LinkEvent) {
    let waiter = shared.withLock { shared -> CheckedContinuation<LinkEvent, Never>? in
      guard !shared.hasEnded else { return nil }
      if case .ended = event { shared.hasEnded = true }
      if shared.waiter == nil { shared.events.append(event) }
      return shared.waiter.take()
    }
    waiter?.resume(returning: event)
  }

  /// Waits until the last message is settled.
  /// - Returns: whether it is durable; also false if the connection is closed in the meantime.
  func isLastMessageTaken() -> Bool {
    while true {
      let verdict = shared.withLock { $0.isClosed ? false : $0.isTaken.take() }
      if let verdict { return verdict }
      var descriptor = pollfd(fd: wakeUp, events: Int16(POLLIN), revents: 0)
      poll(&descriptor, 1, -1)
      emptyWakeUp()
    }
  }

  func emptyWakeUp() {
    var count: eventfd_t = 0
    eventfd_read(wakeUp, &count)
  }
}
