// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import FreePorts
import Glibc
import Synchronization
import Testing
import Threads

@testable import NetworkDaemon

/// The push listener on a real socket.
@Suite(.timeLimit(.minutes(5))) struct PushListenerTests {
  private static let post = "POST /push HTTP/1.1\r\nHost: board\r\nContent-Length: 2\r\n\r\n{}"

  /// Listens on a free port while `body` runs.
  /// - Parameter patience: by default long, as the machine may be busy.
  private func listening(
    _ clock: SteppingClock = SteppingClock(), patience: Duration = .seconds(30),
    _ body: (_ port: UInt16, _ hints: Hints) async throws -> Void
  ) async throws {
    let port = try UInt16(FreePort.reserve())
    let hints = Hints()
    let listener = try PushListener(
      at: #require(ListenAddress("127.0.0.1:\(port)")), patience: patience, uptime: { clock.now },
      onHint: { hints.add() })
    let running = Task { try await listener.run() }
    try await body(port, hints)
    running.cancel()
    try await running.finished()
  }

  @Test("A post is a hint and is answered with a number alone") func aPostIsAHintAndIsAnsweredWithANumberAlone()
    async throws
  {
    try await listening { port, hints in
      let caller = try Caller(to: port)
      caller.send(Self.post)
      #expect(await caller.answer == "HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
      #expect(hints.count == 1)
    }
  }

  @Test("A post may come byte by byte") func aPostMayComeByteByByte() async throws {
    try await listening { port, hints in
      let caller = try Caller(to: port)
      for byte in Self.post { caller.send(String(byte)) }
      #expect(await caller.status == 200)
      #expect(hints.count == 1)
    }
  }

  @Test(
    "Whatever else is refused and is no hint",
    arguments: [
      ("POST /pull HTTP/1.1\r\nHost: board\r\nContent-Length: 2\r\n\r\n{}", 404),
      ("GET /push HTTP/1.1\r\nHost: board\r\n\r\n", 405),
      ("POST /push HTTP/1.1\r\nHost: board\r\nContent-Length: 16385\r\n\r\n", 413),
      (String(repeating: "x", count: 8193), 431), ("\r\n\r\n", 400), (Self.post + Self.post, 400),
    ])
  func whateverElseIsRefusedAndIsNoHint(request: String, status: Int) async throws {
    try await listening { port, hints in
      let caller = try Caller(to: port)
      caller.send(request)
      #expect(await caller.status == status)
      #expect(hints.count == 0)
    }
  }

  /// Rejected requests do not use up the rate limit; requests beyond five get 429.
  @Test("A flood is answered and is no hint") func aFloodIsAnsweredAndIsNoHint() async throws {
    let clock = SteppingClock()
    try await listening(clock) { port, hints in
      func statuses(of request: String, times: Int) async throws -> [Int?] {
        var statuses: [Int?] = []
        for _ in 0..<times {
          let caller = try Caller(to: port)
          caller.send(request)
          statuses.append(await caller.status)
        }
        return statuses
      }
      let refused = try await statuses(of: "GET / HTTP/1.1\r\n\r\n", times: 10)
      #expect(refused == Array(repeating: 405, count: 10))
      let flood = try await statuses(of: Self.post, times: 7)
      #expect(flood == [200, 200, 200, 200, 200, 429, 429])
      clock.advance(by: .seconds(3))
      let later = try await statuses(of: Self.post, times: 2)
      #expect(later == [200, 429])
      #expect(hints.count == 6)
    }
  }

  /// The clock advances by `step` with each reading: the time limit of two seconds passes after one short wait.
  @Test(
    "Who says too little in two seconds is left",
    arguments: [
      ("", Duration.milliseconds(1990)), ("POST /push HTTP/1.1\r\n", .seconds(1)),
      (String(Self.post.dropLast()), .seconds(1)),
    ])
  func whoSaysTooLittleInTwoSecondsIsLeft(text: String, step: Duration) async throws {
    try await listening(SteppingClock(step: step), patience: PushListener.patience) { port, hints in
      let caller = try Caller(to: port)
      caller.send(text)
      #expect(await caller.status == 408)
      #expect(hints.count == 0)
    }
  }

  @Test("Callers wait for each other") func callersWaitForEachOther() async throws {
    try await listening { port, hints in
      let first = try Caller(to: port)
      first.send(Self.post.prefix(30))
      let (second, third) = (try Caller(to: port), try Caller(to: port))
      second.finish()
      third.send(Self.post)
      first.send(Self.post.dropFirst(30))
      #expect(await first.status == 200)
      #expect(await second.status == 400, "hung up before it said anything")
      #expect(await third.status == 200)
      #expect(hints.count == 2)
    }
  }

  @Test("A sender that disconnects before the answer does no harm")
  func senderThatDisconnectsBeforeTheAnswerDoesNoHarm() async throws {
    try await listening { port, hints in
      for _ in 0..<3 {
        let caller = try Caller(to: port)
        caller.send(Self.post)
        caller.finish()
      }
      let caller = try Caller(to: port)
      caller.send(Self.post)
      #expect(await caller.status == 200)
      #expect(hints.count == 4)
    }
  }

  @Test("A port that is taken is named") func aPortThatIsTakenIsNamed() async throws {
    try await listening { port, _ in
      let address = try #require(ListenAddress("127.0.0.1:\(port)"))
      #expect {
        try PushListener(at: address, onHint: {})
      } throws: { error in
        "\(error)".contains("cannot listen on 127.0.0.1:\(port)")
      }
    }
  }
}

final class Hints: Sendable {
  private let total = Atomic(0)
  var count: Int { total.load(ordering: .acquiring) }
  func add() { total.add(1, ordering: .acquiringAndReleasing) }
}

/// A clock that advances by `step` with each reading.
private final class SteppingClock: Sendable {
  private let reading = Mutex(Duration.seconds(100))
  private let step: Duration

  init(step: Duration = .zero) { self.step = step }

  var now: Duration {
    reading.withLock { reading in
      reading += step
      return reading
    }
  }

  func advance(by duration: Duration) { reading.withLock { $0 += duration } }
}

final class Caller: Sendable {
  private let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)

  init(to port: UInt16) throws {
    // A time limit, so that a broken listener fails the test.
    var limit = timeval(tv_sec: 60, tv_usec: 0)
    setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
    var yes: Int32 = 1
    setsockopt(descriptor, Int32(IPPROTO_TCP), TCP_NODELAY, &yes, socklen_t(MemoryLayout<Int32>.size))
    try #require(withLoopback(port) { connect(descriptor, $0, $1) } == 0)
  }

  deinit { close(descriptor) }

  func send(_ text: some StringProtocol) {
    let bytes = Array(text.utf8)
    #expect(Glibc.send(descriptor, bytes, bytes.count, Int32(MSG_NOSIGNAL)) == bytes.count)
  }

  func finish() { shutdown(descriptor, Int32(SHUT_WR)) }

  /// The whole response, until the listener closes the connection.
  var answer: String {
    get async {
      await withCheckedContinuation { continuation in
        _ = detachThread { [descriptor] in
          var (answer, chunk) = ([UInt8](), [UInt8](repeating: 0, count: 256))
          while case let count = recv(descriptor, &chunk, chunk.count, 0), count > 0 { answer += chunk[..<count] }
          continuation.resume(returning: String(decoding: answer, as: UTF8.self))
        }
      }
    }
  }

  /// The status of the response.
  var status: Int? {
    get async { await answer.split(separator: " ").dropFirst().first.flatMap { Int($0) } }
  }
}

private func withLoopback(_ port: UInt16, _ body: (UnsafePointer<sockaddr>, socklen_t) -> Int32) -> Int32 {
  var address = sockaddr_in()
  address.sin_family = sa_family_t(AF_INET)
  address.sin_port = port.bigEndian
  address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
  return withUnsafePointer(to: &address) {
    $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { body($0, socklen_t(MemoryLayout<sockaddr_in>.size)) }
  }
}
