// SPDX-License-Identifier: Apache-2.0
import CLinux
import Glibc

/// A thread for the event loop of a C library.
package struct LoopThread: Sendable {
  private let thread: pthread_t

  /// Starts the thread. Ends the process if the system has no thread left.
  /// - Parameters:
  ///   - name: what `top -H` shows; at most 15 bytes.
  ///   - body: what the thread does. Signals are blocked: other threads handle them, and a broken connection is an
  ///     error here, not SIGPIPE.
  package init(named name: StaticString, _ body: @escaping @Sendable () -> Void) {
    let (status, thread) = start(nil) {
      blockAllSignals()
      name.withUTF8Buffer { $0.withMemoryRebound(to: CChar.self) { approval_linux_name_thread($0.baseAddress) } }
      body()
    }
    guard status == 0 else { fatalError("the thread \"\(name)\" cannot be started: errno \(status)") }
    self.thread = thread
  }

  /// Waits for the end of the thread. Either this or `detach` must be called, once, by another thread.
  package func join() { pthread_join(thread, nil) }

  /// Lets the thread end by itself.
  package func detach() { pthread_detach(thread) }
}

/// Starts a detached thread with a 128 KiB stack for a blocking call.
/// - Returns: false if the system has no thread left; `body` is never called then, and whatever waits for it must be
///   told.
package func detachThread(_ body: @escaping @Sendable () -> Void) -> Bool {
  var attributes = pthread_attr_t()
  pthread_attr_init(&attributes)
  pthread_attr_setdetachstate(&attributes, Int32(PTHREAD_CREATE_DETACHED))
  pthread_attr_setstacksize(&attributes, 128 * 1024)
  defer { pthread_attr_destroy(&attributes) }
  return start(&attributes, body).status == 0
}

private func start(
  _ attributes: UnsafePointer<pthread_attr_t>?, _ body: @escaping @Sendable () -> Void
) -> (status: Int32, thread: pthread_t) {
  final class Body: Sendable {
    let run: @Sendable () -> Void
    init(_ run: @escaping @Sendable () -> Void) { self.run = run }
  }
  let context = Unmanaged.passRetained(Body(body))
  var thread = pthread_t()
  let status = pthread_create(
    &thread, attributes,
    { context in
      guard let context else { return nil }
      Unmanaged<Body>.fromOpaque(context).takeRetainedValue().run()
      return nil
    }, context.toOpaque())
  if status != 0 { context.release() }
  return (status, thread)
}

private func blockAllSignals() {
  var all = sigset_t()
  sigfillset(&all)
  pthread_sigmask(SIG_BLOCK, &all, nil)
}
