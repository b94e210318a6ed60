// SPDX-License-Identifier: Apache-2.0
import ControlProtocol
import Glibc
import JSONValues
import Synchronization
import Testing
import Threads
import UnixSockets

@testable import BenchPage

@Suite(.timeLimit(.minutes(5))) struct RetryTests {
  @Test("The end of a service is one end, and the attempts become rare") func pauses() {
    var retry = Retry()
    let first = retry.ended()
    #expect(first.isFirst && first.pause == .milliseconds(50))
    var former = first.pause
    for _ in 1...20 {
      let next = retry.ended()
      #expect(!next.isFirst && next.pause >= former && next.pause <= .seconds(1))
      former = next.pause
    }
    #expect(former == .seconds(1))
    retry.answered()
    let again = retry.ended()
    #expect(again.isFirst && again.pause == .milliseconds(50))
  }

  @Test("A service that accepts connections and answers nothing ends once; then its answer is taken")
  func deadService() async throws {
    var template = Array("/tmp/dead-token-XXXXXX".utf8CString)
    try #require(mkdtemp(&template) != nil)
    let folder = String(decoding: template.dropLast().map(UInt8.init(bitPattern:)), as: UTF8.self)
    let path = ControlRequest.socket(in: folder)
    defer {
      unlink(path)
      remove(folder)
    }
    let listener = try UnixSocket.listening(at: path)
    let seen = Seen()
    let hasStarted = detachThread {
      for _ in 1...3 { close(accept(listener.descriptor, nil, nil)) }
      let answering = UnixSocket(descriptor: accept(listener.descriptor, nil, nil))
      _ = try? answering.readLine()
      try? answering.write(line: Array(#"{"a":1}"#.utf8))
    }
    try #require(hasStarted)
    let token = TokenProgram(program: "/bin/false", folder: folder, attachedTo: folder)
    token.follow(.followBoard, ended: { seen.ended() }) { _ in
      seen.answered()
      return false
    }
    try await wait(.seconds(60), for: "the answer and the end after it") { seen.words.last == "end" && seen.hasAnswer }
    #expect(seen.words == ["end", "answer", "end"])
  }
}

/// What a follower was notified of, in this order.
private final class Seen: Sendable {
  private let list = Mutex<[String]>([])

  var words: [String] { list.withLock { $0 } }
  var hasAnswer: Bool { words.contains("answer") }
  func ended() { list.withLock { $0.append("end") } }
  func answered() { list.withLock { $0.append("answer") } }
}
