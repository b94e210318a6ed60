// SPDX-License-Identifier: Apache-2.0
import CLinux
import Glibc

/// Messages to the process that started the service, as in sd_notify(3): datagrams to the socket that `NOTIFY_SOCKET`
/// names.
package struct ServiceManager: Sendable {
  private let path: String?
  /// How often the service manager must hear `WATCHDOG=1`: half of the time after which it restarts a silent service,
  /// from 0.1 s to an hour. Nil if it does not watch this process.
  package let watchdogInterval: Duration?

  /// - Parameters:
  ///   - path: the value of `NOTIFY_SOCKET`; a leading `@` stands for an abstract address. Nil or empty: no message is
  ///     sent.
  ///   - watchdogMicroseconds: the value of `WATCHDOG_USEC`, as in sd_watchdog_enabled(3). Not a positive number: no
  ///     watchdog.
  ///   - watchdogProcess: the value of `WATCHDOG_PID`: the process that is watched; nil for any.
  package init(path: String?, watchdogMicroseconds: String? = nil, watchdogProcess: String? = nil) {
    self.path = path
    let isWatched = watchdogProcess.map { Int32($0) == getpid() } ?? true
    let microseconds = watchdogMicroseconds.flatMap { UInt64($0) }.map { Int64(clamping: $0 / 2) } ?? 0
    let interval = Duration.microseconds(microseconds)
    watchdogInterval = isWatched && microseconds > 0 ? min(max(interval, .milliseconds(100)), .seconds(3600)) : nil
  }

  /// Sends a message like `READY=1`. An error has no effect here: the service manager has time limits of its own.
  package func notify(_ message: String) {
    guard let path, let (address, length) = Self.address(path) else { return }
    let descriptor = socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
    guard descriptor >= 0 else { return }
    defer { close(descriptor) }
    let bytes = Array(message.utf8)
    _ = withUnsafePointer(to: address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        sendto(descriptor, bytes, bytes.count, Int32(MSG_NOSIGNAL), $0, length)
      }
    }
  }

  private static func address(_ path: String) -> (sockaddr_un, socklen_t)? {
    var address = sockaddr_un()
    address.sun_family = sa_family_t(AF_UNIX)
    var bytes = Array(path.utf8)
    guard !bytes.isEmpty, bytes.count < MemoryLayout.size(ofValue: address.sun_path) else { return nil }
    if bytes[0] == UInt8(ascii: "@") { bytes[0] = 0 }
    withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: bytes) }
    // An abstract address ends with its length.
    return (address, socklen_t(MemoryLayout<sa_family_t>.size + bytes.count))
  }
}
