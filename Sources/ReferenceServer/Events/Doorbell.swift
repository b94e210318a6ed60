import Dispatch
import Glibc

/// How a command in another process wakes the running server: a byte into a named pipe. What there is to do is in
/// the database.
struct Doorbell: Sendable {
  let path: String

  struct Failure: Error, CustomStringConvertible {
    let description: String
  }

  /// Does nothing if no server is running: it will look at the database when it starts.
  func ring() {
    let descriptor = open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC)
    guard descriptor >= 0 else { return }
    defer { close(descriptor) }
    var byte: UInt8 = 1
    // A pipe that is full has rung already.
    _ = write(descriptor, &byte, 1)
  }

  /// Calls `answer` after every ring, until the source is cancelled.
  func listen(_ answer: @escaping @Sendable () -> Void) throws -> any DispatchSourceRead {
    guard mkfifo(path, 0o600) == 0 || errno == EEXIST else {
      throw Failure(description: "cannot make the pipe \(path): \(String(cString: strerror(errno)))")
    }
    // Open for writing too, so that it never reports an end when a command closes its side.
    let descriptor = open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC)
    guard descriptor >= 0 else { throw Failure(description: "cannot open the pipe \(path)") }
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
