import CCurl
import Courier
import Glibc
import Synchronization

/// The thread that runs one courier's transfers: started by the first command, ended and waited for by `end`.
final class CourierThread: Sendable {
  private enum Phase {
    case notStarted
    case running(CommandQueue, pthread_t)
    case ended
  }

  private let trust: ServerTrust
  private let phase = Mutex(Phase.notStarted)

  init(trust: ServerTrust) {
    self.trust = trust
  }

  deinit { end() }

  func post(_ command: Command) {
    phase.withLock { phase in
      if case .notStarted = phase { phase = start() }
      if case .running(let queue, _) = phase {
        queue.append(command)
      } else if case .start(let order) = command {
        order.mailbox.finish(.failure(.cancelled))
      }
    }
  }

  /// Waits until the thread is gone: the process may exit right after, and must not pull OpenSSL away under it.
  /// That takes milliseconds, since nothing the thread does waits for the network. Not for a task's cancellation
  /// handler: the runtime may hold the task still meanwhile, and the thread wait to wake it.
  func end() {
    let running = phase.withLock { phase -> pthread_t? in
      defer { phase = .ended }
      guard case .running(let queue, let thread) = phase else { return nil }
      queue.append(.end)
      return thread
    }
    if let running { pthread_join(running, nil) }
  }

  private func start() -> Phase {
    let queue = CommandQueue(trust: trust)
    var thread = pthread_t()
    let status = pthread_create(
      &thread, nil,
      { context in
        guard let context else { return nil }
        let queue = Unmanaged<CommandQueue>.fromOpaque(context).takeRetainedValue()
        blockAllSignals()
        approval_curl_name_thread("courier")
        TransferLoop(obeying: queue).run()
        return nil
      }, Unmanaged.passRetained(queue).toOpaque())
    guard status == 0 else { fatalError("the courier's thread cannot be started: errno \(status)") }
    return .running(queue, thread)
  }
}

/// Signals are for the threads that expect them, and a broken connection must be an error, not SIGPIPE.
private func blockAllSignals() {
  var all = sigset_t()
  sigfillset(&all)
  pthread_sigmask(SIG_BLOCK, &all, nil)
}

/// The way into the courier's thread. Owns the multi handle because waking the thread up needs it alive.
final class CommandQueue: Sendable {
  let trust: ServerTrust
  /// Used by the courier's thread alone, save for `curl_multi_wakeup`, which any thread may call.
  nonisolated(unsafe) let multi: UnsafeMutableRawPointer
  private let commands = Mutex<[Command]>([])

  init(trust: ServerTrust) {
    self.trust = trust
    guard libcurlStatus == CURLE_OK, let multi = curl_multi_init() else {
      fatalError("libcurl does not start: \(libcurlStatus)")
    }
    self.multi = multi
    // Idle connections kept, at some 50 kB each. Far more than one event stream and one request need.
    _ = approval_curl_multi_set_long(multi, CURLMOPT_MAXCONNECTS, 4)
  }

  deinit { curl_multi_cleanup(multi) }

  func append(_ command: Command) {
    commands.withLock { $0.append(command) }
    curl_multi_wakeup(multi)
  }

  func takeAll() -> [Command] {
    commands.withLock { commands in
      defer { commands = [] }
      return commands
    }
  }
}

private let libcurlStatus = curl_global_init(Int(CURL_GLOBAL_DEFAULT))
