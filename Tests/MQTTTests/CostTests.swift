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

  /// A broker that accepts a subscription and then sends messages without reading their acknowledgments. It says
  /// whether all could be sent.
  private static let deafBroker = """
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
    connection.sendall(bytes([0x20, 3, 0, 0, 0]))
    kind, content = packet()
    while kind >> 4 != 8: kind, content = packet()
    connection.sendall(bytes([0x90, 4]) + content[:2] + bytes([0, 1]))
    messages = b"".join(bytes([0x32, 6, 0, 1, 120]) + (i + 1).to_bytes(2, "big") + b"\\0" for i in range(10000))
    connection.settimeout(5)
    try:
        for _ in range(300): connection.sendall(messages)
        print("all was sent", flush=True)
    except OSError as error:
        print("not all was sent", flush=True)
    """

  /// Fails if an acknowledgment is queued for each message, without a limit.
  @Test("A broker that does not read makes the client need no memory") func brokerThatDoesNotRead() async throws {
    let broker = try await TestBroker()
    let deaf = try ChildProcess(
      "python3", ["-c", Self.deafBroker, broker.directory.file("broker.pem"), broker.directory.file("broker.key")])
    let port = try #require(Int(try await deaf.output.line(with: "port").dropFirst(5)))
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
