// SPDX-License-Identifier: Apache-2.0
import Glibc

/// A Unix domain stream socket. Lines are for the control channel: short ones, few clients, bounded waits.
package final class UnixSocket: @unchecked Sendable {
  package enum SocketError: Error, Equatable, CustomStringConvertible {
    case pathTooLong(String)
    /// An empty path, or one with a zero byte: the kernel would make a socket of it that has no file, and no mode.
    case noPath
    /// What is at the path is something else.
    case notSocket(String)
    case call(String, errno: Int32)
    case lineTooLong

    package var description: String {
      switch self {
      case .pathTooLong(let path): "\(path) is too long for a socket: at most 107 bytes"
      case .noPath: "the path of a socket is empty, or has a zero byte"
      case .notSocket(let path): "\(path) exists and is not a socket; it is not replaced"
      case .call(let call, let code): "\(call): \(String(cString: strerror(code)))"
      case .lineTooLong: "a line on the control socket is too long"
      }
    }
  }

  /// The maximum length of a line, in bytes; the request list of a busy token fits.
  package static let longestLine = 1 << 22

  package let descriptor: Int32
  /// Used only by `readLine`, which one task calls.
  private var buffered: [UInt8] = []

  package init(descriptor: Int32) { self.descriptor = descriptor }

  deinit { close(descriptor) }

  /// - Parameters:
  ///   - seconds: the longest wait for a place at the listener, and later the timeout for a write without progress; nil
  ///     for none.
  ///   - waits: whether to wait until the listener has a place for the connection.
  /// - Throws: EAGAIN if the listener has no place, after the wait.
  package static func connected(
    to path: String, within seconds: Int? = nil, waits: Bool = true
  ) throws(SocketError) -> UnixSocket {
    let socket = try UnixSocket.make(waits ? 0 : Int32(SOCK_NONBLOCK.rawValue))
    if let seconds { socket.setTimeout(SO_SNDTIMEO, seconds: seconds) }
    // A signal, such as SIGCONT, ends a wait with a limit.
    while try withAddress(path, { connect(socket.descriptor, $0, $1) }) != 0 {
      guard errno == EINTR else { throw .call("connect \(path)", errno: errno) }
    }
    return socket
  }

  /// Listens at `path`, replacing the socket file of an earlier process. The file's mode is 0600.
  /// - Parameter unlessInUse: whether a socket where a process listens is an error, in place of being replaced.
  package static func listening(at path: String, unlessInUse: Bool = false) throws(SocketError) -> UnixSocket {
    let socket = try UnixSocket.make()
    if unlessInUse, try isInUse(path) { throw .call("bind \(path)", errno: EADDRINUSE) }
    var status = stat()
    if lstat(path, &status) == 0 {
      guard status.st_mode & S_IFMT == S_IFSOCK else { throw .notSocket(path) }
      unlink(path)
    }
    // bind(2) gives the file this mode. A change of umask(2) instead would affect the files of all threads.
    guard fchmod(socket.descriptor, 0o600) == 0 else { throw .call("fchmod", errno: errno) }
    let code = try withAddress(path) { bind(socket.descriptor, $0, $1) }
    guard code == 0 else { throw .call("bind \(path)", errno: errno) }
    guard listen(socket.descriptor, 16) == 0 else { throw .call("listen \(path)", errno: errno) }
    return socket
  }

  /// Whether a process listens at `path`. Does not wait.
  package static func isInUse(_ path: String) throws(SocketError) -> Bool {
    let socket = try UnixSocket.make(Int32(SOCK_NONBLOCK.rawValue))
    let code = try withAddress(path) { connect(socket.descriptor, $0, $1) }
    // EAGAIN: the listener has no place for another connection.
    return code == 0 || errno == EAGAIN
  }

  private static func make(_ flags: Int32 = 0) throws(SocketError) -> UnixSocket {
    let descriptor = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue) | flags, 0)
    guard descriptor >= 0 else { throw .call("socket", errno: errno) }
    return UnixSocket(descriptor: descriptor)
  }

  private static func withAddress(
    _ path: String, _ body: (UnsafePointer<sockaddr>, socklen_t) -> Int32
  ) throws(SocketError) -> Int32 {
    var address = sockaddr_un()
    address.sun_family = sa_family_t(AF_UNIX)
    let bytes = Array(path.utf8)
    guard !bytes.isEmpty, !bytes.contains(0) else { throw .noPath }
    guard bytes.count < MemoryLayout.size(ofValue: address.sun_path) else { throw .pathTooLong(path) }
    withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: bytes) }
    return withUnsafePointer(to: &address) {
      $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { body($0, socklen_t(MemoryLayout<sockaddr_un>.size)) }
    }
  }

  /// Sets the timeout for a read or write without progress.
  package func setTimeout(seconds: Int) {
    for option in [SO_RCVTIMEO, SO_SNDTIMEO] { setTimeout(option, seconds: seconds) }
  }

  private func setTimeout(_ option: Int32, seconds: Int) {
    var timeout = timeval(tv_sec: seconds, tv_usec: 0)
    setsockopt(descriptor, SOL_SOCKET, option, &timeout, socklen_t(MemoryLayout<timeval>.size))
  }

  /// The next line without its line feed; nil at end of stream.
  /// - Parameter seconds: the time limit for the whole line; nil for none.
  package func readLine(within seconds: Int? = nil) throws(SocketError) -> [UInt8]? {
    let end = seconds.map { ContinuousClock.now + .seconds($0) }
    // Each byte is searched once.
    var searched = 0
    while true {
      if let end, .now > end { throw .call("read", errno: ETIMEDOUT) }
      if let end = buffered[searched...].firstIndex(of: UInt8(ascii: "\n")) {
        defer { buffered.removeSubrange(...end) }
        return Array(buffered[..<end])
      }
      searched = buffered.count
      guard buffered.count < Self.longestLine else { throw .lineTooLong }
      var chunk = [UInt8](repeating: 0, count: 4096)
      let count = read(descriptor, &chunk, chunk.count)
      if count < 0, errno == EINTR { continue }
      guard count >= 0 else { throw .call("read", errno: errno) }
      guard count > 0 else { return nil }
      buffered += chunk[..<count]
    }
  }

  /// - Parameters:
  ///   - seconds: the time limit for the whole line; nil for none.
  ///   - willWait: called before the thread waits for a reader that is slow.
  package func write(line: [UInt8], within seconds: Int? = nil, willWait: () -> Void = {}) throws(SocketError) {
    let end = seconds.map { ContinuousClock.now + .seconds($0) }
    var rest = (line + [UInt8(ascii: "\n")])[...]
    var waits = false
    while !rest.isEmpty {
      if let end, .now > end { throw .call("write", errno: ETIMEDOUT) }
      let flags = Int32(waits ? MSG_NOSIGNAL : MSG_NOSIGNAL | MSG_DONTWAIT)
      let count = rest.withUnsafeBytes { send(descriptor, $0.baseAddress, $0.count, flags) }
      if count < 0, errno == EINTR { continue }
      if count < 0, errno == EAGAIN, !waits {
        willWait()
        waits = true
        continue
      }
      guard count > 0 else { throw .call("write", errno: errno) }
      rest = rest.dropFirst(count)
    }
  }
}
