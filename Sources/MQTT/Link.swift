import CMosquitto
import Glibc
import Synchronization

/// What the thread of one connection tells the task that waits for it.
enum LinkEvent: Sendable {
  /// Connected and, if there is a mailbox, subscribed.
  case up
  /// The thread stands still until `settle` is called.
  case message([UInt8])
  /// A message of so many bytes was refused and is gone.
  case oversize(Int)
  /// The broker has it, or refuses it.
  case published(Post, isAccepted: Bool)
  /// The last one.
  case ended(BrokerError)
}

/// Something to publish.
struct Post: Sendable, Hashable {
  var topic: String
  var payload: [UInt8]
  var isRetained = false
}

/// One connection to a broker, on a thread of its own, and what that thread and one task tell each other.
final class Link: Sendable {
  private struct Shared {
    var events: [LinkEvent] = []
    var waiter: CheckedContinuation<LinkEvent, Never>?
    var posts: [Post] = []
    var isTaken: Bool?
    var isClosed = false
    var hasEnded = false
    /// The thread is in a call that nothing can interrupt: it looks up a name, or waits for TCP.
    var isStuck = false
    var thread: pthread_t?
  }

  let session: Session
  /// An eventfd: readable when the thread should look here.
  let wakeUp: Int32
  private let shared = Mutex(Shared())

  init(_ session: Session) {
    self.session = session
    wakeUp = approval_mqtt_new_wake_up()
  }

  deinit { Glibc.close(wakeUp) }

  // MARK: The task's side

  func start() {
    let context = Unmanaged.passRetained(self).toOpaque()
    // The thread comes to this lock, too, before it does anything that `close` must know of.
    let status = shared.withLock { shared -> Int32 in
      var thread = pthread_t()
      defer { shared.thread = thread }
      return pthread_create(
        &thread, nil,
        { context in
          guard let context else { return nil }
          let link = Unmanaged<Link>.fromOpaque(context).takeRetainedValue()
          blockAllSignals()
          approval_mqtt_name_thread("mqtt")
          let failure = LinkLoop(link).run()
          link.put(.ended(failure))
          return nil
        }, context)
    }
    guard status == 0 else { fatalError("the thread for a broker cannot be started: errno \(status)") }
  }

  /// The next event. After `.ended`, the thread is gone, or will be once the call it is stuck in returns.
  func next() async -> LinkEvent {
    let event = await withCheckedContinuation { continuation in
      let event = shared.withLock { shared -> LinkEvent? in
        if !shared.events.isEmpty { return shared.events.removeFirst() }
        shared.waiter = continuation
        return nil
      }
      if let event { continuation.resume(returning: event) }
    }
    // The process may exit right after, and must not pull OpenSSL away under the thread.
    if case .ended = event, let thread = shared.withLock({ $0.thread.take() }) { pthread_join(thread, nil) }
    return event
  }

  /// Lets the thread go on after a message.
  func settle(isTaken: Bool) { tell { $0.isTaken = isTaken } }

  func publish(_ post: Post) { tell { $0.posts.append(post) } }

  /// Ends the connection. Any thread may call it, any number of times.
  func close() {
    let isStuck = shared.withLock { shared in
      shared.isClosed = true
      guard shared.isStuck, let thread = shared.thread.take() else { return false }
      pthread_detach(thread)
      return true
    }
    if isStuck { put(.ended(.closed)) }
    eventfd_write(wakeUp, 1)
  }

  private func tell(_ change: (inout Shared) -> Void) {
    shared.withLock { change(&$0) }
    eventfd_write(wakeUp, 1)
  }

  // MARK: The thread's side

  var isClosed: Bool { shared.withLock { $0.isClosed } }

  /// What is to be published, once.
  func takePosts() -> [Post] {
    shared.withLock { shared in
      defer { shared.posts = [] }
      return shared.posts
    }
  }

  /// Runs what cannot be interrupted, unless the connection is closed already.
  func stuck(in work: () throws(BrokerError) -> Void) throws(BrokerError) {
    let mayStart = shared.withLock { shared in
      shared.isStuck = !shared.isClosed
      return shared.isStuck
    }
    guard mayStart else { throw .closed }
    defer { shared.withLock { $0.isStuck = false } }
    try work()
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

  /// Sleeps until the message that was put last is settled.
  /// - Returns: whether it is durable; false too when the connection is closed meanwhile.
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

/// Signals are for the threads that expect them, and a broken connection must be an error, not SIGPIPE.
private func blockAllSignals() {
  var all = sigset_t()
  sigfillset(&all)
  pthread_sigmask(SIG_BLOCK, &all, nil)
}
