// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import MQTT
import ProgramHarness
import Testing

/// The publisher, observed with mosquitto's own client.
@Suite("Publisher", .timeLimit(.minutes(5)))
struct PublisherTests {
  @Test("A posted message is delivered", arguments: [Broker.Version.v311, .v5])
  func postedMessageIsDelivered(version: Broker.Version) async throws {
    let broker = try await TestBroker()
    let follower = try await broker.follow("hints/+")
    let publisher = Running(at: broker.broker(version: version))
    for number in 1...100 { publisher.post("hint \(number)", to: "hints/\(number)") }
    for number in 1...100 { try await follower.output.line(with: "hint \(number)") }
    try await publisher.isDone()
  }

  @Test("Equal messages for a broker that is down are queued once")
  func equalMessagesForABrokerThatIsDownAreQueuedOnce() async throws {
    let broker = try await TestBroker()
    let follower = try await broker.follow("hints/+")
    follower.send(9)
    try await follower.exit()
    try await broker.stop()
    let publisher = Running(at: broker.broker())
    for number in 1...50 {
      for topic in ["hints/1", "hints/2"] { publisher.post("old \(number % 2)", to: topic, isRetained: number > 0) }
    }
    try await publisher.sees("a try") { !$0.isEmpty }
    try await broker.start()
    try await publisher.sees("a connection") { $0.contains(.connected) }
    try await publisher.isDone()
    let late = try await broker.follow("hints/+")
    // Retained: only the last message of each topic. The broker's log has all of them.
    try await late.output.line(with: "old 0")
    #expect(late.output.count(of: "old ") <= 2)
    let logged = { broker.log?.count(of: "Received PUBLISH from server") ?? 0 }
    _ = try await eventually("the log of four messages") { logged() >= 4 ? true : nil }
    #expect(logged() == 4)
  }

  @Test("A restart of the broker loses nothing") func restartOfTheBrokerLosesNothing() async throws {
    let broker = try await TestBroker()
    let consumer = Consumer(of: broker.broker(), topics: ["hints/1"])
    try await consumer.isConnected(to: "hints/1")
    let publisher = Running(at: broker.broker())
    try await publisher.sees("a connection") { $0.contains(.connected) }
    publisher.post("before", to: "hints/1")
    try await consumer.got(["before"])
    try await broker.stop()
    publisher.post("meanwhile", to: "hints/1")
    try await broker.start()
    try await consumer.sees("meanwhile") { $0.messages.last == "meanwhile" }
    try await publisher.isDone()
  }

  @Test("Invalid topics are rejected without delaying others") func invalidTopicsAreRejectedWithoutDelayingOthers()
    async throws
  {
    let broker = try await TestBroker()
    let consumer = Consumer(of: broker.broker(), topics: ["hints/1"])
    try await consumer.isConnected(to: "hints/1")
    let publisher = Running(at: broker.broker())
    publisher.post("nowhere", to: "hints/#")
    publisher.post("here", to: "hints/1")
    try await consumer.got(["here"])
    try await publisher.sees("the refusal") { $0.contains(.refused(topic: "hints/#")) }
    try await publisher.isDone()
  }

  @Test("The queue is bounded") func queueIsBounded() async throws {
    let broker = try await TestBroker()
    let refused = Observed([Publisher.Report]())
    let full = Publisher(
      at: broker.broker(), clientID: "full", random: { 0 }, report: { report in refused.change { $0.append(report) } })
    for number in 0...Publisher.maximumWaiting { full.post([1], to: "hints/\(number)") }
    full.post([1], to: "hints/0")
    #expect(refused.value == [.refused(topic: "hints/\(Publisher.maximumWaiting)")])
  }

  /// A publisher that runs in its own task.
  final class Running: Sendable {
    private let publisher: Publisher
    private let reports = Observed([Publisher.Report]())
    private let task: Task<Void, any Error>

    init(at broker: Broker) {
      let reports = reports
      let publisher = Publisher(
        at: broker, clientID: "server", random: { 0 }, report: { report in reports.change { $0.append(report) } },
        sleep: { _ in try await Task.sleep(for: .milliseconds(50)) })
      self.publisher = publisher
      task = Task { try await publisher.run() }
    }

    deinit { task.cancel() }

    func isDone() async throws {
      _ = try await eventually("everything acknowledged") { publisher.isIdle ? true : nil }
    }

    func post(_ text: String, to topic: String, isRetained: Bool = false) {
      publisher.post(Array(text.utf8), to: topic, isRetained: isRetained)
    }

    func sees(_ what: String, _ condition: @escaping @Sendable ([Publisher.Report]) -> Bool) async throws {
      guard await reports.first(within: patience, { condition($0) ? true : nil }) != nil else {
        throw OutputTimeoutError(description: "\(what), but \(reports.value)")
      }
    }
  }
}
