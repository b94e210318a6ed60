// SPDX-License-Identifier: Apache-2.0
import Dispatch
import Glibc

/// Wakes the running server from a command in another process, with a byte into a named pipe. The work itself is in the
/// database.
struct WakePipe: Sendable {
  let path: String

  struct WakePipeError: Error, CustomStringConvertible {
    let description: String
  }

  /// Wakes the server. Does nothing if no server is running: a server reads the database when it starts.
  func ring() {
    let descriptor = open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC)
    guard descriptor >= 0 else { return }
    defer { close(descriptor) }
    var byte: UInt8 = 1
    // A write to a full pipe fails; the server is being woken already.
    _ = write(descriptor, &byte, 1)
  }

  /// Calls `answer` after every wake-up, until the source is canceled.
  func listen(_ answer: @escaping @Sendable () -> Void) throws -> any DispatchSourceRead {
    guard mkfifo(path, 0o600) == 0 || errno == EEXIST else {
      throw WakePipeError(description: "cannot create the pipe \(path): \(String(cString: strerror(errno)))")
    }
    // Open for writing too, so that the pipe reports no end of file when a command closes it.
    let descriptor = open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC)
    guard descriptor >= 0 else { throw WakePipeError(description: "cannot open the pipe \(path)") }
    let source = DispatchSource.makeReadSource(fileDescriptor: descriptor)
    source.setEventHandler {
      var bytes = [UInt8](repeating: 0, count: 64)
      while read(descriptor, &bytes, bytes.count) > 0 {}
      answer()
    }
    source.setCancelHandler { close(descriptor) }
    source.activate()
    return source
  }
}
