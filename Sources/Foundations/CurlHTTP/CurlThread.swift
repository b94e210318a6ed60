// SPDX-License-Identifier: Apache-2.0
import CCurl
import COpenSSL
import HTTP
import Synchronization
import Threads

/// The thread that runs the transfers of one HTTP client. Started by the first command, stopped and joined by `end`.
final class CurlThread: Sendable {
  private enum Phase {
    case notStarted
    case running(CommandQueue, LoopThread)
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
        order.buffer.finish(.failure(.canceled))
      }
    }
  }

  /// - Returns: whether the thread has carried out its commands since the last call, or does not run. One call asks,
  ///   the next one has the result.
  func hasReacted() -> Bool {
    phase.withLock { phase in
      guard case .running(let queue, _) = phase else { return true }
      return queue.hasReacted()
    }
  }

  /// Stops the thread and waits for its end, because the process may exit afterwards and must not free OpenSSL's data
  /// while the thread uses it. Takes milliseconds: the thread never blocks on the network. Must not be called from a
  /// cancellation handler: the runtime may hold a lock of the task that the thread needs to resume it.
  func end() {
    let running = phase.withLock { phase -> LoopThread? in
      defer { phase = .ended }
      guard case .running(let queue, let thread) = phase else { return nil }
      queue.append(.end)
      return thread
    }
    running?.join()
  }

  private func start() -> Phase {
    let queue = CommandQueue(trust: trust)
    return .running(queue, LoopThread(named: "http") { TransferLoop(obeying: queue).run() })
  }
}

/// The command queue of the HTTP client's thread. Owns the multi handle, which must be valid to wake the thread.
final class CommandQueue: Sendable {
  let trust: ServerTrust
  /// Used only by the thread of the HTTP client, except for `curl_multi_wakeup`, which any thread may call.
  nonisolated(unsafe) let multi: UnsafeMutableRawPointer
  private let commands = Mutex<[Command]>([])
  /// The number of the last note asked for, and of the last one that the thread has made.
  private let notes = Mutex((asked: 0, made: 0))

  init(trust: ServerTrust) {
    self.trust = trust
    guard libcurlStatus == CURLE_OK, let multi = curl_multi_init() else {
      fatalError("libcurl does not start: \(libcurlStatus)")
    }
    self.multi = multi
    // The number of idle connections kept, about 50 kB each. Enough for one event stream and one request.
    _ = approval_curl_multi_set_long(multi, CURLMOPT_MAXCONNECTS, 4)
  }

  deinit { curl_multi_cleanup(multi) }

  func append(_ command: Command) {
    commands.withLock { $0.append(command) }
    curl_multi_wakeup(multi)
  }

  /// As for `CurlThread.hasReacted`.
  func hasReacted() -> Bool {
    let (hasReacted, number) = notes.withLock { notes in
      notes.asked &+= 1
      return (notes.made == notes.asked &- 1, notes.asked)
    }
    append(.note(number))
    return hasReacted
  }

  func made(note number: Int) { notes.withLock { $0.made = number } }

  func takeAll() -> [Command] {
    commands.withLock { commands in
      defer { commands = [] }
      return commands
    }
  }
}

private let libcurlStatus = {
  // libssl loads the texts of its own errors. Those of libcrypto, 50 KiB, are left out: libcurl then reports such an
  // error, as for a malformed certificate, by its number, which `openssl errstr` explains.
  OPENSSL_init_crypto(UInt64(OPENSSL_INIT_NO_LOAD_CRYPTO_STRINGS), nil)
  return curl_global_init(Int(CURL_GLOBAL_DEFAULT))
}()
