// SPDX-License-Identifier: Apache-2.0
import ControlProtocol
import Foundation
import Glibc
import Synchronization
import Testing
import UnixSockets

@Suite(.timeLimit(.minutes(5))) struct ControlSocketTests {
  private func path() -> String { "/tmp/at-control-\(getpid())-\(UInt32.random(in: 0 ... .max))" }

  /// Other tests of this process change the mask, to others.
  @Test("Sockets that are made at the same time do not leave the process with their mode as its mask")
  func mask() async throws {
    try await withThrowingTaskGroup(of: Void.self) { group in
      for _ in 1...8 {
        let path = path()
        group.addTask {
          defer { unlink(path) }
          for _ in 1...200 { _ = try UnixSocket.listening(at: path) }
        }
      }
      try await group.waitForAll()
    }
    let status = try String(contentsOfFile: "/proc/self/status", encoding: .utf8)
    let mask = try #require(status.firstMatch(of: /Umask:\t([0-7]+)/))
    #expect(mask.1 != "0177")
  }

  @Test("A line goes there and one comes back") func aLineGoesThereAndOneComesBack() throws {
    let path = path()
    let listener = try UnixSocket.listening(at: path)
    defer { unlink(path) }
    var status = stat()
    #expect(stat(path, &status) == 0 && status.st_mode & 0o777 == 0o600)
    let client = try UnixSocket.connected(to: path)
    let server = UnixSocket(descriptor: accept(listener.descriptor, nil, nil))
    for socket in [client, server] { socket.setTimeout(seconds: 60) }
    try client.write(line: Array("one".utf8))
    try client.write(line: Array("two".utf8))
    #expect(try server.readLine() == Array("one".utf8))
    #expect(try server.readLine() == Array("two".utf8))
    try server.write(line: [])
    #expect(try client.readLine() == [])
  }

  @Test("A client that sends a line slowly is dropped after the time limit for the whole line")
  func tricklingCallerIsGivenUp() throws {
    let path = path()
    let listener = try UnixSocket.listening(at: path)
    defer { unlink(path) }
    let client = try UnixSocket.connected(to: path)
    let server = UnixSocket(descriptor: accept(listener.descriptor, nil, nil))
    server.setTimeout(seconds: 60)
    for byte in "never a line".utf8 { _ = withUnsafeBytes(of: byte) { send(client.descriptor, $0.baseAddress, 1, 0) } }
    #expect(throws: UnixSocket.SocketError.call("read", errno: ETIMEDOUT)) { try server.readLine(within: 0) }
  }

  @Test("A missing service is reported with a remedy") func missingServiceIsReportedWithARemedy() {
    #expect {
      try ControlClient(path: path()).call(.status, Done.self)
    } throws: { error in
      (error as? CommandError)?.code == .unavailable && "\(error)".contains("is not running")
    }
  }

  /// The service closes the connection at once, before the client has written, or after.
  @Test("A refusal is reported, and is not the absence of a service", arguments: 0..<20)
  func refusal(round: Int) throws {
    let path = path()
    let socket = try UnixSocket.listening(at: path)
    let listener = socket.descriptor
    defer { unlink(path) }
    // Both sides block their thread.
    Thread.detachNewThread {
      let caller = UnixSocket(descriptor: accept(listener, nil, nil))
      try? caller.write(line: Array(#"{"error":"too busy","code":69}"#.utf8))
    }
    let failure = #expect(throws: CommandError.self) {
      try ControlClient(path: path).call(.status, Done.self, within: 60)
    }
    #expect(failure?.description == "too busy" && failure?.isServiceMissing == false)
    extendLifetime(socket)
  }

  @Test("A service that accepts no further connection runs, and does not answer") func noPlace() async throws {
    let path = path()
    let listener = try UnixSocket.listening(at: path)
    defer { unlink(path) }
    let waiting = (0..<100).map { _ in try? UnixSocket.connected(to: path, waits: false) }
    #expect(waiting.contains { $0 == nil })
    let outcome = Outcome()
    // In a thread, which waits for the end of the listener at the most.
    Thread.detachNewThread {
      let client = ControlClient(path: path)
      outcome.add(client.isServiceRunning ? "runs" : "does not run")
      do {
        try ControlClient.$patience.withValue(1) { _ = try client.call(.status, Done.self) }
        outcome.add("has answered")
      } catch { outcome.add("\(error)") }
    }
    for _ in 0..<600 where outcome.words.count < 2 { try await Task.sleep(for: .milliseconds(100)) }
    #expect(outcome.words == ["runs", "the service does not answer at \(path); see its log"])
    extendLifetime((listener, waiting))
  }

  @Test("A path that does not fit is refused") func aPathThatDoesNotFitIsRefused() {
    let path = "/tmp/" + String(repeating: "x", count: 200)
    #expect(throws: UnixSocket.SocketError.pathTooLong(path)) { try UnixSocket.listening(at: path) }
  }

  /// Fails if it becomes a socket without a file, to which every user can connect.
  @Test("An empty path, or one with a zero byte, is refused", arguments: ["", "\0approval"]) func noPath(path: String) {
    #expect(throws: UnixSocket.SocketError.noPath) { try UnixSocket.listening(at: path) }
    #expect(throws: UnixSocket.SocketError.noPath) { try UnixSocket.listening(at: path, unlessInUse: true) }
    #expect(throws: UnixSocket.SocketError.noPath) { try UnixSocket.connected(to: path) }
  }

  @Test("Only a socket is replaced") func replaced() throws {
    let path = path()
    defer { unlink(path) }
    _ = try UnixSocket.listening(at: path)
    _ = try UnixSocket.listening(at: path, unlessInUse: true)
    unlink(path)
    try "of a user".write(toFile: path, atomically: true, encoding: .utf8)
    #expect(throws: UnixSocket.SocketError.notSocket(path)) { try UnixSocket.listening(at: path) }
    #expect(try String(contentsOfFile: path, encoding: .utf8) == "of a user")
  }

  @Test("A socket in use is refused where it is not to be replaced") func inUse() throws {
    let path = path()
    defer { unlink(path) }
    let first = try UnixSocket.listening(at: path, unlessInUse: true)
    #expect(throws: UnixSocket.SocketError.call("bind \(path)", errno: EADDRINUSE)) {
      try UnixSocket.listening(at: path, unlessInUse: true)
    }
    // Also when no further connection is accepted.
    let waiting = (0..<100).map { _ in try? UnixSocket.connected(to: path, waits: false) }
    #expect(waiting.contains { $0 == nil })
    #expect(throws: UnixSocket.SocketError.call("bind \(path)", errno: EADDRINUSE)) {
      try UnixSocket.listening(at: path, unlessInUse: true)
    }
    extendLifetime((first, waiting))
  }

  @Test("A caller who hangs up ends the line") func aCallerWhoHangsUpEndsTheLine() throws {
    let path = path()
    let listener = try UnixSocket.listening(at: path)
    defer { unlink(path) }
    var client: UnixSocket? = try UnixSocket.connected(to: path)
    let server = UnixSocket(descriptor: accept(listener.descriptor, nil, nil))
    server.setTimeout(seconds: 60)
    try client?.write(line: Array("whole".utf8))
    client = nil
    #expect(try server.readLine() == Array("whole".utf8))
    #expect(try server.readLine() == nil)
    #expect(throws: UnixSocket.SocketError.self) {
      for _ in 0..<1000 { try server.write(line: [UInt8](repeating: 65, count: 4096)) }
    }
  }
}

/// What a thread has seen, in this order.
private final class Outcome: Sendable {
  private let list = Mutex<[String]>([])

  var words: [String] { list.withLock { $0 } }
  func add(_ word: String) { list.withLock { $0.append(word) } }
}
