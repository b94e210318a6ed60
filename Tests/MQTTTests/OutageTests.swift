// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import Glibc
import ProgramHarness
import Testing

@testable import MQTT

/// Brokers that stop, restart, or do not exist.
@Suite("Outages", .timeLimit(.minutes(5)))
struct OutageTests {
  @Test("A restarted broker still has undelivered messages", arguments: [Broker.Version.v311, .v5])
  func restartedBrokerStillHasUndeliveredMessages(version: Broker.Version) async throws {
    let broker = try await TestBroker()
    let consumer = Consumer(of: broker.broker(version: version))
    try await consumer.isConnected()
    try await broker.publish("one", to: "mailbox/1")
    try await broker.acknowledged(1)
    await consumer.stop()
    try await broker.publish("kept", to: "mailbox/1")
    try await broker.stop()
    try await broker.start()
    let next = Consumer(of: broker.broker(version: version))
    try await next.got(["kept"])
    try await broker.acknowledged(1)
    try await broker.stop()
    try await next.sees("the end") { $0.reports.count > 1 }
    try await broker.start()
    try await next.isConnected(2)
    try await broker.publish("two", to: "mailbox/1")
    try await next.got(["kept", "two"])
  }

  @Test("The backoff grows to a minute while a broker is down, with jitter")
  func backoffGrowsToAMinuteWhileABrokerIsDownWithJitter() async throws {
    let broker = try await TestBroker()
    try await broker.stop()
    let gate = Observed(false)
    let consumer = Consumer(
      of: broker.broker(), random: { 0.5 },
      sleep: { [pauses = Observed(0)] _ in
        pauses.change { $0 += 1 }
        guard pauses.value >= 9 else { return }
        _ = await gate.first(within: patience) { $0 ? true : nil }
      })
    try await consumer.sees("nine pauses") { $0.pauses.count == 9 }
    #expect(consumer.seen.value.pauses == [1, 2, 4, 8, 16, 32, 60, 60, 60].map { Duration.seconds($0) * 0.75 })
    for report in consumer.seen.value.reports {
      guard case .disconnected(.unreachable("Connection refused"), _) = report else {
        Issue.record("\(report)")
        continue
      }
    }
    try await broker.start()
    gate.change { $0 = true }
    try await consumer.isConnected()
  }

  @Test("After a power loss the presence is offline immediately") func afterAPowerLossThePresenceIsOfflineImmediately()
    async throws
  {
    let broker = try await TestBroker()
    let presence = try await broker.follow("presence/1")
    let settings = ExitSettings(port: broker.port, authority: broker.authority)
    let flag = broker.directory.file("is-online")
    let noticing = Task {
      try await presence.output.line(with: "online")
      _ = try broker.directory.write("", to: "is-online")
    }
    await #expect(processExitsWith: .signal(SIGKILL)) { [settings = settings as ExitSettings, flag = flag as String] in
      let mailbox = Subscriber(
        at: settings.broker, topics: ["mailbox/1"], clientID: "token1", presence: "presence/1", random: { 0 },
        report: { report in
          guard case .connected = report else { return }
          // The calling thread has not sent "online" yet.
          Task {
            for _ in 1...6000 where access(flag, F_OK) != 0 { try await Task.sleep(for: .milliseconds(10)) }
            kill(getpid(), SIGKILL)
          }
        })
      try await mailbox.run { _, _ in true }
    }
    try await noticing.finished()
    try await presence.output.line(with: "offline")
    // Retained: later subscribers receive it, too.
    let later = try await broker.follow("presence/1")
    try await later.output.line(with: "offline")
    let pointer = try await broker.follow("mailbox/1/presence")
    try await pointer.output.line(with: "presence/1")
  }

  @Test("A broker with a shorter keepalive stays connected") func shorterKeepalive() async throws {
    let broker = try await TestBroker(options: "max_keepalive 10")
    let consumer = Consumer(of: broker.broker())
    try await consumer.isConnected()
    try await broker.log?.line(with: "Received PINGREQ from token1")
    #expect(consumer.seen.value.reports == [.connected(topic: "mailbox/1")])
  }

  /// A listener without room for another connection does not respond.
  private static let silentBroker = """
    import socket, time
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    listener.listen(0)
    waiting = [socket.socket() for _ in range(3)]
    for one in waiting:
        one.setblocking(False)
        one.connect_ex(listener.getsockname())
    print("port", listener.getsockname()[1], flush=True)
    time.sleep(600)
    """

  @Test("A broker that does not respond is given up in time, and keeps few threads") func noResponse() async throws {
    let broker = try await TestBroker()
    let silent = try ChildProcess("python3", ["-c", Self.silentBroker])
    let port = try #require(Int(try await silent.output.line(with: "port").dropFirst(5)))
    let settings = [port, broker.port].map { ExitSettings(port: $0, authority: broker.authority) }
    await #expect(processExitsWith: .success) { [settings = settings as [ExitSettings]] in
      @Sendable func listen(within limit: Duration) async -> BrokerError {
        let mailbox = Subscriber(
          at: settings[0].broker, topics: ["mailbox/1"], clientID: "token1", over: LocalConnector(setUpLimit: limit),
          random: { 0 })
        return await mailbox.listen { _, _ in true }
      }
      // After a time-out, the next attempts use addresses of one kind, if the broker has any.
      for _ in 1...2 {
        #expect(await listen(within: .seconds(1)) == .unreachable("no connection within \(Duration.seconds(1))"))
        let consumer = Consumer(of: settings[1].broker)
        try await consumer.isConnected()
        await consumer.stop()
      }
      var last: BrokerError?
      for _ in 1...10 {
        let listening = Task { await listen(within: .seconds(60)) }
        try await Task.sleep(for: .milliseconds(200))
        listening.cancel()
        last = try await listening.finished()
      }
      #expect(last == .unreachable("4 earlier attempts to connect have not ended"))
      #expect(ThisProcess.threads(named: "mqtt").count == 4)
    }
    #expect(silent.isRunning)
  }

  @Test("Attempts go on with other addresses after time-outs, whatever the number of connections")
  func plans() async {
    await #expect(processExitsWith: .success) {
      // The plan of the next attempt, after each step.
      var plans = [try Attempts.begin()]
      for plan in [0, 1] {
        for _ in 1...3 { Attempts.noteTimeOut(of: plan) }
        plans.append(try Attempts.begin())
      }
      // No address of this kind. The last plan has time for the second of the other kind.
      for plan in [2, 1, 3, 0] {
        Attempts.noteFailure(of: plan)
        plans.append(try Attempts.begin())
      }
      #expect(plans == [0, 1, 2, 3, 3, 0, 0])
      #expect(Attempts.plans[3].source == nil && Attempts.plans[3].patience > 1)
      // What has connected is used again. Neither a refusal nor silence of the broker then leads to the long plan.
      for end in [Attempts.noteFailure, Attempts.noteTimeOut] {
        Attempts.noteTimeOut(of: 0)
        Attempts.noteConnection(by: 1)
        plans.append(try Attempts.begin())
        end(1)
        plans.append(try Attempts.begin())
      }
      for plan in 0...2 { Attempts.noteTimeOut(of: plan) }
      Attempts.noteConnection(by: 3)
      plans.append(try Attempts.begin())
      #expect(plans.suffix(5) == [1, 0, 1, 0, 0])
    }
  }

  @Test("Presence says online, and offline when the task is cancelled")
  func presenceSaysOnlineAndOfflineWhenTheTaskIsCancelled() async throws {
    let broker = try await TestBroker()
    let presence = try await broker.follow("presence/1")
    let consumer = Consumer(of: broker.broker(), presence: "presence/1")
    try await presence.output.line(with: "online")
    await consumer.stop()
    try await presence.output.line(with: "offline")
  }
}

/// The settings for the exit test's process.
struct ExitSettings: Codable, Sendable {
  let port: Int
  let authority: String
}
