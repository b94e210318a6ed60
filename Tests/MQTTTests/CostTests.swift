// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import Foundation
import MQTT
import ProgramHarness
import Synchronization
import Testing

/// The memory, threads and descriptors of a mailbox, during its use and after the cancellation of its task. Measured in
/// separate processes without other activity.
@Suite("Cost", .timeLimit(.minutes(3)))
struct CostTests {
  @Test("Ten thousand messages need no more memory than a few") func tenThousandMessagesNeedNoMoreMemoryThanAFew()
    async throws
  {
    let broker = try await TestBroker()
    let away = Consumer(of: broker.broker())
    try await away.isConnected()
    await away.stop()
    let count = 10_000
    try await broker.publish(String(repeating: "x", count: 4096), to: "mailbox/1", "--repeat", "\(count)")
    let settings = ExitSettings(port: broker.port, authority: broker.authority)
    await #expect(processExitsWith: .success) { [settings = settings as ExitSettings, count = count as Int] in
      let mailbox = Subscriber(at: settings.broker, topics: ["mailbox/1"], clientID: "token1", random: { 0 })
      let arrived = Mutex(0)
      let early = Observed(0)
      let isDone = Observed(false)
      let listening: Task<Void, any Error> = Task {
        try await mailbox.run { _, _ in
          let number = arrived.withLock { count in
            count += 1
            return count
          }
          if number == 100 { early.change { $0 = (try? ThisProcess.peakMemory()) ?? 0 } }
          if number == count { isDone.change { $0 = true } }
          return true
        }
      }
      #expect(await isDone.first(within: .seconds(120)) { $0 ? true : nil } == true)
      // 40 MB have been received.
      let late = try ThisProcess.peakMemory()
      #expect(late - early.value < 4 << 10, "kB")
      listening.cancel()
      // The thread must not run while the process exits.
      _ = try? await listening.finished()
    }
  }

  /// A broker that accepts a connection, with the properties that the third argument has in hexadecimal digits, and a
  /// subscription.
  private static let acceptingBroker = """
    import socket, ssl, sys
    listener = socket.create_server(("127.0.0.1", 0))
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    print("port", listener.getsockname()[1], flush=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(sys.argv[1], sys.argv[2])
    connection = context.wrap_socket(listener.accept()[0], server_side=True)
    data = bytearray()
    def take(count):
        while len(data) < count:
            data.extend(connection.recv(4096) or sys.exit("closed"))
        taken = bytes(data[:count])
        del data[:count]
        return taken
    def packet():
        kind, length, shift = take(1)[0], 0, 0
        while True:
            byte = take(1)[0]
            length, shift = length | (byte & 127) << shift, shift + 7
            if byte < 128: return kind, take(length)
    packet()
    properties = bytes.fromhex(sys.argv[3])
    connection.sendall(bytes([0x20, 3 + len(properties), 0, 0, len(properties)]) + properties)
    kind, content = packet()
    while kind >> 4 != 8: kind, content = packet()
    connection.sendall(bytes([0x90, 4]) + content[:2] + bytes([0, 1]))
    """

  /// Sends messages without reading their acknowledgments, and says whether all could be sent.
  private static let deafBroker = """
    \(acceptingBroker)
    messages = b"".join(bytes([0x32, 6, 0, 1, 120]) + (i + 1).to_bytes(2, "big") + b"\\0" for i in range(10000))
    connection.settimeout(5)
    try:
        for _ in range(300): connection.sendall(messages)
        print("all was sent", flush=True)
    except OSError as error:
        print("not all was sent", flush=True)
    """

  /// Answers PINGREQs and counts them. Ends after ten seconds without a packet if the fourth argument says so.
  private static let quietBroker = """
    \(acceptingBroker)
    if sys.argv[4] == "strict": connection.settimeout(10)
    while True:
        if packet()[0] >> 4 == 12:
            print("ping", flush=True)
            connection.sendall(bytes([0xD0, 0]))
    """

  /// - Parameter properties: of CONNACK.
  /// - Returns: the broker, and its port.
  private static func start(
    _ script: String, with certificate: TestBroker, properties: String = "", _ more: String...
  ) async throws -> (broker: ChildProcess, port: Int) {
    let files = [certificate.directory.file("broker.pem"), certificate.directory.file("broker.key")]
    let broker = try ChildProcess("python3", ["-c", script] + files + [properties] + more)
    let port = try #require(Int(try await broker.output.line(with: "port").dropFirst(5)))
    return (broker, port)
  }

  /// Fails if an acknowledgment is queued for each message, without a limit.
  @Test("A broker that does not read makes the client need no memory") func brokerThatDoesNotRead() async throws {
    let broker = try await TestBroker()
    let (deaf, port) = try await Self.start(Self.deafBroker, with: broker)
    let settings = ExitSettings(port: port, authority: broker.authority)
    await #expect(processExitsWith: .success) { [settings = settings as ExitSettings] in
      let isUp = Observed(false)
      let mailbox = Subscriber(
        at: settings.broker, topics: ["mailbox/1"], clientID: "token1", random: { 0 },
        report: { report in if report == .connected(topic: "mailbox/1") { isUp.change { $0 = true } } })
      let listening: Task<Void, any Error> = Task { try await mailbox.run { _, _ in true } }
      #expect(await isUp.first(within: patience) { $0 ? true : nil } == true)
      let before = try ThisProcess.peakMemory()
      try await Task.sleep(for: .seconds(8))
      #expect(try ThisProcess.peakMemory() - before < 16 << 10, "kB")
      listening.cancel()
      _ = try? await listening.finished()
    }
    #expect(try await deaf.output.line(with: "all was sent").hasPrefix("not"))
  }

  @Test("An idle connection sleeps") func idleConnectionSleeps() async throws {
    let broker = try await TestBroker()
    let settings = ExitSettings(port: broker.port, authority: broker.authority)
    await #expect(processExitsWith: .success) { [settings = settings as ExitSettings] in
      let isUp = Observed(false)
      let mailbox = Subscriber(
        at: settings.broker, topics: ["mailbox/1"], clientID: "token1", random: { 0 },
        report: { report in isUp.change { $0 = report == .connected(topic: "mailbox/1") } })
      #expect(ThisProcess.threads(named: "mqtt").isEmpty)
      let listening: Task<Void, any Error> = Task { try await mailbox.run { _, _ in true } }
      #expect(await isUp.first(within: patience) { $0 ? true : nil } == true)
      let thread = try #require(ThisProcess.threads(named: "mqtt").first)
      #expect(try await ThisProcess.sleeps(thread) { try await Task.sleep(for: .seconds(2)) })
      listening.cancel()
      _ = try? await listening.finished()
    }
  }

  /// The client's own keepalive of 5 s passes meanwhile.
  @Test("With a broker's keepalive of ten minutes, or none, an idle connection sleeps") func rarePings() async throws {
    let certificate = try await TestBroker()
    let (rare, rarePort) = try await Self.start(Self.quietBroker, with: certificate, properties: "130258", "patient")
    let (never, neverPort) = try await Self.start(Self.quietBroker, with: certificate, properties: "130000", "patient")
    let settings = [rarePort, neverPort].map { ExitSettings(port: $0, authority: certificate.authority) }
    await #expect(processExitsWith: .success) { [settings = settings as [ExitSettings]] in
      let connections = Observed(0)
      let listening = settings.map { settings -> Task<Void, any Error> in
        let mailbox = Subscriber(
          at: settings.broker, topics: ["mailbox/1"], clientID: "token1", over: LocalConnector(keepalive: 5),
          random: { 0 },
          report: { report in if report == .connected(topic: "mailbox/1") { connections.change { $0 += 1 } } })
        return Task { try await mailbox.run { _, _ in true } }
      }
      #expect(await connections.first(within: patience) { $0 == 2 ? true : nil } == true)
      let threads = ThisProcess.threads(named: "mqtt")
      #expect(threads.count == 2)
      let before = try threads.map { try ThisProcess.processorTime(of: $0) }
      try await Task.sleep(for: .seconds(9))
      let after = try threads.map { try ThisProcess.processorTime(of: $0) }
      for (before, after) in zip(before, after) { #expect(after - before < 20, "hundredths of a second") }
      #expect(connections.value == 2)
      for task in listening {
        task.cancel()
        _ = try? await task.finished()
      }
    }
    #expect(rare.output.count(of: "ping") == 0)
    #expect(never.output.count(of: "ping") == 0)
  }

  @Test("A broker that wants a packet every two seconds gets one") func frequentPings() async throws {
    let certificate = try await TestBroker()
    let (broker, port) = try await Self.start(Self.quietBroker, with: certificate, properties: "130002", "strict")
    let consumer = Consumer(of: ExitSettings(port: port, authority: certificate.authority).broker)
    try await consumer.isConnected()
    try await broker.output.line(with: "ping")
    try await broker.output.line(with: "ping", from: 1 + (broker.output.lines.firstIndex(of: "ping") ?? 0))
    #expect(consumer.seen.value.reports == [.connected(topic: "mailbox/1")])
    await consumer.stop()
  }

  @Test("Canceled at any moment, it leaves nothing behind") func canceledAtAnyMomentItLeavesNothingBehind() async throws
  {
    let broker = try await TestBroker()
    let seed = UInt64.random(in: .min ... .max)
    let settings = ExitSettings(port: broker.port, authority: broker.authority)
    await #expect(processExitsWith: .success, "seed \(seed)") {
      [settings = settings as ExitSettings, seed = seed as UInt64] in
      var state = seed
      let mailbox = Subscriber(
        at: settings.broker, topics: ["mailbox/1"], clientID: "token1", presence: "presence/1", random: { 0 })
      let publisher = Publisher(at: settings.broker, clientID: "server", random: { 0 })
      var descriptors = 0
      for round in 0..<200 {
        publisher.post([UInt8(round)], to: "mailbox/1")
        let tasks: [Task<Void, any Error>] = [
          Task { try await mailbox.run { _, _ in true } }, Task { try await publisher.run() },
        ]
        // The first step of splitmix64: enough to distribute the moments over the set-up of a connection.
        state &+= 0x9E37_79B9_7F4A_7C15
        try await Task.sleep(for: .microseconds(Int64(state >> 33) % 40_000))
        let canceled = ContinuousClock.now
        for task in tasks {
          task.cancel()
          _ = try? await task.finished()
        }
        #expect(.now - canceled < .seconds(5))
        guard round == 5 || round == 199 else { continue }
        // Name resolution and TCP connects end later, without further calls.
        _ = try await eventually("the end of the thread") { ThisProcess.threads(named: "mqtt").isEmpty ? true : nil }
        let open = try FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd").count
        if round == 5 { descriptors = open } else { #expect(open == descriptors) }
      }
    }
  }
}
