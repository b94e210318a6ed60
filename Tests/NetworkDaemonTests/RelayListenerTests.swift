// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import FreePorts
import Glibc
import HTTP
import Logging
import MQTT
import MobileAuth
import RelayProtocol
import Synchronization
import Testing
import UnixSockets

@testable import NetworkDaemon
@testable import TokenDaemon

/// The network process's side of the relay, on a real socket.
@Suite("Network process", .timeLimit(.minutes(5))) struct RelayListenerTests {
  private func listening(_ body: (_ path: String, _ relay: Relay) async throws -> Void) async throws {
    let path = newPath()
    defer { unlink(path) }
    let listener = try listener(at: path)
    let running = Task { await listener.run() }
    // Tests beside this one can delay its tasks.
    try await body(path, Relay(path: path, patience: .seconds(30)))
    running.cancel()
    try await running.finished()
  }

  private func newPath() -> String { "/tmp/relay-\(getpid())-\(UInt32.random(in: 0 ... .max))" }

  private func listener(at path: String, idleLimit: Duration? = nil) throws -> RelayListener {
    // Tests beside this one can delay those who send an order, or a request.
    let orders = RelayOrders(clients: NetworkClients(), pushPatience: .seconds(30))
    return RelayListener(
      try UnixSocket.listening(at: path), orders: orders, idleLimit: idleLimit, patience: .seconds(30))
  }

  @Test("It ends when it has been idle for the limit, but not while there is a connection") func idle() async throws {
    let path = newPath()
    defer { unlink(path) }
    let listener = try listener(at: path, idleLimit: .seconds(1))
    let isOver = Mutex(false)
    let running: Task<Void, Never>
    do {
      let socket = try RelaySocket.connected(to: path)
      running = Task {
        await listener.run()
        isOver.withLock { $0 = true }
      }
      try await socket.send(RelayOrder.attend.bytes)
      #expect(try await socket.receive(atMost: RelayReply.longest) == RelayReply.accepted.bytes)
      // Longer than twice the limit.
      try await Task.sleep(for: .seconds(3))
      #expect(isOver.withLock { $0 } == false)
      #expect(try await socket.receive(atMost: RelayReply.longest) == RelayReply.up.bytes)
    }
    try await running.finished()
  }

  @Test("A request to a server that is not there is an error of that server") func unreachable() async throws {
    let port = try UInt16(FreePort.reserve())
    try await listening { _, relay in
      let http = RelayHTTPTransport(trust: ServerTrust(), through: relay)
      for _ in 1...3 {
        let failure = await #expect(throws: HTTPTransportError.self) {
          try await http.send(HTTPRequest(.get, "https://127.0.0.1:\(port)/", deadline: .seconds(60)))
        }
        guard case .unreachable(let why) = failure else {
          Issue.record("\(String(describing: failure))")
          return
        }
        #expect(!why.contains("network process"), "\(why)")
      }
    }
  }

  @Test("A subscription at a broker that is not there ends with the broker's error") func noBroker() async throws {
    let port = try UInt16(FreePort.reserve())
    try await listening { _, relay in
      let broker = Broker(host: "127.0.0.1", port: port, trust: ServerTrust())
      let subscription = Subscription(broker: broker, topics: ["mailbox"], clientID: "t1", presence: nil)
      let end = await RelayConnector(through: relay).run(subscription) { _ in
      } _: { _, _ in
        true
      }
      guard case .unreachable(let why) = end else {
        Issue.record("\(end)")
        return
      }
      #expect(!why.contains("network process"), "\(why)")
    }
  }

  @Test("Login hints arrive while their order lasts") func hints() async throws {
    let port = try UInt16(FreePort.reserve())
    try await listening { _, relay in
      let (hints, isUp) = (Hints(), Hints())
      let following = Task {
        await relay.listen(at: "127.0.0.1:\(port)", isUp: { isUp.add() }, onHint: { hints.add() })
      }
      try await eventually("the order is accepted") { isUp.count == 1 }
      do {
        let caller = try Caller(to: port)
        caller.send("POST /push HTTP/1.1\r\nHost: board\r\nContent-Length: 2\r\n\r\n{}")
        #expect(await caller.status == 200)
      }
      try await eventually("a hint") { hints.count == 1 }
      following.cancel()
      #expect(try await following.finished() == nil)
      // The port is free again, so that the order can be repeated.
      try await eventually("the port is free") {
        (try? ListenAddress("127.0.0.1:\(port)")?.listen()).map { close($0) } != nil
      }
      guard case .refused? = await relay.listen(at: "everywhere", isUp: {}, onHint: {}) else {
        Issue.record("listens at a name")
        return
      }
    }
  }

  @Test("What is no order is refused") func noOrder() async throws {
    try await listening { path, _ in
      for order: [UInt8] in [[], [0, 0], [1, 99], Array("GET / HTTP/1.1\r\n".utf8)] {
        let socket = try RelaySocket.connected(to: path)
        try await socket.send(order)
        let reply = try #require(try await socket.receive(atMost: RelayReply.longest))
        guard case .refused = try RelayReply(reply) else {
          Issue.record("\(order) is accepted")
          continue
        }
        #expect(try await socket.receive(atMost: 1) == nil)
      }
    }
  }

  @Test("The watch notices the end of the network process, and its return") func watch() async throws {
    let ends = Hints()
    let lines = Mutex<[String]>([])
    let path = Mutex<String>("")
    try await listening { place, relay in
      path.withLock { $0 = place }
      let clock = TokenEnvironment.system()
      let logger = Logger(label: "test") { _ in PlainLogRecorder { line in lines.withLock { $0.append(line) } } }
      let watch = NetworkProcessWatch(
        relay: relay, environment: clock, logger: LimitedLog(logger, clock: clock.clock)
      ) { if $0 != nil { ends.add() } }
      let watching = Task { try await watch.run() }
      try await eventually("the log says that the network process is reached") {
        lines.withLock { $0 }.contains { $0.contains("reached the network process") }
      }
      #expect(ends.count == 0)
      watching.cancel()
      try await watching.finished()
    }
    let place = path.withLock { $0 }
    let clock = TokenEnvironment.system()
    let returns = Hints()
    let watch = NetworkProcessWatch(
      relay: Relay(path: place, patience: .seconds(30)), environment: clock,
      logger: LimitedLog(Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }, clock: clock.clock)
    ) { if $0 != nil { ends.add() } else { returns.add() } }
    let watching = Task { try await watch.run() }
    try await eventually("the end is noticed") { ends.count == 1 }
    #expect(returns.count == 0)
    let listener = try listener(at: place)
    defer { unlink(place) }
    let running = Task { await listener.run() }
    try await eventually("the return is noticed") { returns.count == 1 }
    #expect(ends.count == 1)
    running.cancel()
    try await running.finished()
    try await eventually("the second end is noticed") { ends.count == 2 }
    watching.cancel()
    try await watching.finished()
  }
}

/// Passes the text of each log line on.
private struct PlainLogRecorder: LogHandler {
  let take: @Sendable (String) -> Void
  var metadata: Logger.Metadata = [:]
  var logLevel = Logger.Level.trace

  init(_ take: @escaping @Sendable (String) -> Void) { self.take = take }

  subscript(metadataKey key: String) -> Logger.Metadata.Value? {
    get { metadata[key] }
    set { metadata[key] = newValue }
  }

  func log(event: LogEvent) { take("\(event.message)") }
}
