// SPDX-License-Identifier: Apache-2.0
import Glibc
import Synchronization
import Threads

/// Waits for notifications on a connection and a thread of its own.
package final class PostgreSQLListener: Sendable {
  private let wakeUp: (read: Int32, write: Int32)
  private let thread: LoopThread
  private final class Flag: Sendable {
    let isEnded = Atomic<Bool>(false)
  }
  private let flag: Flag

  /// - Parameters:
  ///   - changed: called with an error when the database can no longer be listened to, and with nil when it can again.
  ///   - notified: called with the payload of each notification; with nil whenever some may have been missed.
  init(
    to address: PostgreSQLAddress, channel: String, changed: @escaping @Sendable ((any Error)?) -> Void,
    _ notified: @escaping @Sendable (String?) -> Void
  ) throws {
    var ends: [Int32] = [-1, -1]
    guard pipe(&ends) == 0 else {
      throw PostgreSQLError(state: "", message: "no descriptor is left: errno \(errno)")
    }
    for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
    let (wakeUp, flag) = ((read: ends[0], write: ends[1]), Flag())
    (self.wakeUp, self.flag) = (wakeUp, flag)
    thread = LoopThread(named: "notifications") {
      var hasFailed = false
      while !flag.isEnded.load(ordering: .acquiring) {
        do {
          let connection = try PostgreSQLConnection(to: address)
          try connection.run("LISTEN \(channel)")
          if hasFailed { changed(nil) }
          hasFailed = false
          notified(nil)
          while !flag.isEnded.load(ordering: .acquiring) {
            try connection.notifications(within: .seconds(60), wakeUp: wakeUp.read).forEach(notified)
          }
        } catch {
          if !hasFailed { changed(error) }
          hasFailed = true
          var descriptor = pollfd(fd: wakeUp.read, events: Int16(POLLIN), revents: 0)
          poll(&descriptor, 1, 1000)
        }
      }
    }
  }

  /// Lets the thread end, with its connection. Does not wait: it may be connecting. The descriptors of the pipe are
  /// closed by the end of the process.
  package func end() {
    flag.isEnded.store(true, ordering: .releasing)
    var byte: UInt8 = 1
    _ = write(wakeUp.write, &byte, 1)
    thread.detach()
  }
}
