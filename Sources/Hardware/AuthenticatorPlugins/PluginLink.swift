// SPDX-License-Identifier: Apache-2.0
import CSpawn
import Glibc
import MobileAuth
import Threads
import UnixSockets

/// The connection to a plug-in: a Unix socket, or one end of a pair whose other end is the standard input and output of
/// a child.
final class PluginLink: Sendable {
  struct LinkError: Error {
    let why: String
  }

  enum Read {
    case bytes([UInt8])
    case end, timeIsOver
    case failed(String)
  }

  private let socket: UnixSocket
  private let child: pid_t?

  init(to program: PluginConfiguration.Program) throws(LinkError) {
    switch program {
    case .socket(let path):
      // Without a wait: a program that does not accept connections must not stop the caller.
      do { socket = try UnixSocket.connected(to: path, waits: false) } catch { throw LinkError(why: "\(error)") }
      child = nil
    case .command(let command): (socket, child) = try Self.start(command)
    }
  }

  /// Ends a read that waits in another thread.
  func interrupt() { shutdown(socket.descriptor, Int32(SHUT_RDWR)) }

  /// Ends the connection, and the program that was started for it. Called once, after the last use.
  /// - Parameter patience: how long the program may take to end, before it is killed.
  func end(within patience: Duration) {
    interrupt()
    guard let child else { return }
    Self.waitForEnd(of: child, within: patience)
    // The group can contain children of the program. Until the program is reaped, its identifier is not reused.
    kill(-child, SIGKILL)
    // The program itself, if it has left the group.
    kill(child, SIGKILL)
    var status: Int32 = 0
    while waitpid(child, &status, 0) < 0, errno == EINTR {}
  }

  /// A program that sees the end of its input can end what it has begun, as `reader-key` ends the wait of a key for a
  /// touch. The program is not reaped.
  private static func waitForEnd(of child: pid_t, within patience: Duration) {
    let process = approval_pidfd_open(child)
    guard process >= 0 else { return }
    defer { close(process) }
    let deadline = ContinuousClock.now + patience
    var watched = pollfd(fd: process, events: Int16(POLLIN), revents: 0)
    while case let left = deadline - .now, left > .zero, poll(&watched, 1, left.pollMilliseconds) < 0,
      errno == EINTR
    {}
  }

  /// A program that does not read is found by what it says, or by its time limit.
  func send(_ bytes: [UInt8]) {
    bytes.withUnsafeBytes {
      _ = Glibc.send(socket.descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL | MSG_DONTWAIT))
    }
  }

  func read(until deadline: ContinuousClock.Instant) -> Read {
    var buffer = [UInt8](repeating: 0, count: 4096)
    while true {
      let left = deadline - .now
      guard left > .zero else { return .timeIsOver }
      var watched = pollfd(fd: socket.descriptor, events: Int16(POLLIN), revents: 0)
      let ready = poll(&watched, 1, left.pollMilliseconds)
      if ready == 0 || (ready < 0 && errno == EINTR) { continue }
      let count = recv(socket.descriptor, &buffer, buffer.count, Int32(MSG_DONTWAIT))
      if count < 0, errno == EINTR || errno == EAGAIN { continue }
      if count < 0, errno == ECONNRESET { return .end }
      guard count >= 0 else { return .failed("read: \(String(cString: strerror(errno)))") }
      return count == 0 ? .end : .bytes(Array(buffer[..<count]))
    }
  }

  private static func start(_ command: [String]) throws(LinkError) -> (UnixSocket, pid_t) {
    var ends: [Int32] = [-1, -1]
    guard socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0, &ends) == 0 else {
      throw LinkError(why: "socketpair: \(String(cString: strerror(errno)))")
    }
    let socket = UnixSocket(descriptor: ends[0])
    var arguments = copies(command)
    var environment = copies(["PATH=/usr/local/bin:/usr/bin:/bin", "LANG=C.UTF-8"])
    defer { for text in arguments + environment { free(text) } }
    var child: pid_t = 0
    let error = approval_spawn(&child, &arguments, &environment, "/", ends[1], ends[1], -1)
    close(ends[1])
    guard error == 0 else { throw LinkError(why: "it cannot be started: \(String(cString: strerror(error)))") }
    return (socket, child)
  }

  /// Copies texts for C; the caller frees them.
  private static func copies(_ texts: [String]) -> [UnsafeMutablePointer<CChar>?] { texts.map { strdup($0) } + [nil] }
}
