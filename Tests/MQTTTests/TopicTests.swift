// SPDX-License-Identifier: Apache-2.0
import ProgramHarness
import Testing

@testable import MQTT

/// Many topics over one connection, at a real mosquitto broker.
@Suite("Topics of one connection", .timeLimit(.minutes(5))) struct TopicTests {
  private let both: Set<String> = ["mailbox/1", "mailbox/2"]

  @Test("Messages of all topics arrive, each with its topic", arguments: [Broker.Version.v311, .v5])
  func several(version: Broker.Version) async throws {
    let broker = try await TestBroker()
    let topics = Set((1...100).map { "mailbox/\($0)" })
    let consumer = Consumer(of: broker.broker(version: version), topics: topics)
    for topic in topics { try await consumer.isConnected(to: topic) }
    for number in [1, 50, 100] { try await broker.publish("to \(number)", to: "mailbox/\(number)") }
    try await consumer.got(["to 1", "to 50", "to 100"])
    #expect(consumer.seen.value.topics == ["mailbox/1", "mailbox/50", "mailbox/100"])
    // What is not acknowledged is delivered again.
    try await broker.acknowledged(3)
    #expect(broker.log?.lines.count { $0.contains("New client connected") && $0.contains("as token1") } == 1)
    await consumer.stop()
    try await broker.publish("meanwhile", to: "mailbox/7")
    try await Consumer(of: broker.broker(version: version), topics: topics).got(["meanwhile"])
  }

  @Test("A message that was not stored is delivered again, and others of all topics are not lost")
  func notStored() async throws {
    let broker = try await TestBroker()
    let isRefused = Observed(true)
    let consumer = Consumer(of: broker.broker(), topics: both, takes: { $0 != "one" || !isRefused.value })
    for topic in both { try await consumer.isConnected(to: topic) }
    try await broker.publish("one", to: "mailbox/1")
    try await broker.publish("two", to: "mailbox/2")
    try await consumer.sees("a second attempt") { $0.messages.count { $0 == "one" } >= 2 }
    isRefused.change { $0 = false }
    try await consumer.sees("both") { $0.messages.last == "two" && $0.messages.contains("one") }
  }

  @Test("A topic is added and left by the next connection, which loses no message") func changes() async throws {
    let broker = try await TestBroker()
    let presence = try await broker.follow("mailbox/+/presence")
    let first = Consumer(of: broker.broker(), topics: ["mailbox/1"], presence: "presence/1")
    try await first.isConnected()
    try await presence.output.line(with: "presence/1")
    await first.stop()
    for topic in both.sorted() { try await broker.publish("between, to \(topic)", to: topic) }

    let second = Consumer(of: broker.broker(), topics: both, presence: "presence/1")
    for topic in both { try await second.isConnected(to: topic) }
    try await broker.publish("two", to: "mailbox/2")
    try await second.got(["between, to mailbox/1", "two"])
  }

  /// Fails if the messages of a removed account are kept by the broker, or delivered to another account.
  @Test(
    "Messages of a topic that was left while there was no connection are dropped",
    arguments: [Broker.Version.v311, .v5])
  func leftMeanwhile(version: Broker.Version) async throws {
    let broker = try await TestBroker()
    let first = Consumer(of: broker.broker(version: version), topics: both)
    for topic in both { try await first.isConnected(to: topic) }
    await first.stop()
    for number in 1...3 { try await broker.publish("old \(number)", to: "mailbox/1") }
    try await broker.publish("kept", to: "mailbox/2")
    let next = Consumer(of: broker.broker(version: version), topics: ["mailbox/2"])
    try await next.got(["kept"])
    try await broker.log?.line(with: "Received UNSUBSCRIBE from token1")
    try await broker.acknowledged(4)
    await next.stop()
    try await broker.publish("later", to: "mailbox/1")
    let last = Consumer(of: broker.broker(version: version), topics: both)
    for topic in both { try await last.isConnected(to: topic) }
    try await broker.publish("new", to: "mailbox/1")
    try await last.got(["new"])
  }

  @Test("A topic that may not be read does not end the others", arguments: [Broker.Version.v311, .v5])
  func refused(version: Broker.Version) async throws {
    let broker = try await TestBroker(readable: "mailbox/1")
    let consumer = Consumer(of: broker.broker(version: version), topics: both)
    try await consumer.sees("both answers") {
      $0.reports.contains(.connected(topic: "mailbox/1")) && $0.reports.contains(.mayNotRead(topic: "mailbox/2"))
    }
    try await broker.publish("one", to: "mailbox/1")
    try await consumer.got(["one"])
    #expect(consumer.seen.value.pauses.isEmpty)
  }

  @Test("An invalid topic does not end the others", arguments: ["", "mailbox/#"])
  func invalid(topic: String) async throws {
    let broker = try await TestBroker()
    let consumer = Consumer(of: broker.broker(), topics: ["mailbox/1", topic])
    try await consumer.sees("both answers") {
      $0.reports.contains(.connected(topic: "mailbox/1")) && $0.reports.contains(.mayNotRead(topic: topic))
    }
    #expect(consumer.seen.value.pauses.isEmpty)
  }

  @Test("A refused topic is requested again after a minute") func refusalsEnd() {
    let now = ContinuousClock.now
    var topics = TopicSubscriptions(both, at: now)
    #expect(topics.nextRequest == now)
    #expect(topics.takeDue(at: now) == ["mailbox/1", "mailbox/2"])
    topics.note(request: 1, of: "mailbox/1")
    topics.note(request: 2, of: "mailbox/2")
    #expect(topics.takeDue(at: now).isEmpty)
    #expect(topics.nextRequest == nil && !topics.areAllRefused)
    #expect(topics.noteAnswer(to: 2) == "mailbox/2")
    #expect(topics.noteAnswer(to: 2) == nil)
    topics.noteRefusal(of: "mailbox/2", at: now)
    #expect(!topics.areAllRefused && topics.nextRequest == now + .seconds(60))
    #expect(topics.takeDue(at: now + .seconds(59)).isEmpty)
    #expect(topics.takeDue(at: now + .seconds(60)) == ["mailbox/2"])
    topics.noteRefusal(of: "mailbox/1", at: now)
    topics.noteRefusal(of: "mailbox/2", at: now)
    #expect(topics.areAllRefused && topics.contains("mailbox/1"))
  }

  @Test("The number and the length of other topics is limited") func others() {
    var topics = TopicSubscriptions(both, at: .now)
    let names = ["mailbox/3", "mailbox/3", String(repeating: "x", count: 1025)] + (0..<2000).map { "other/\($0)" }
    var noted: [String] = []
    for name in names where topics.noteOther(name) { noted.append(name) }
    #expect(noted == ["mailbox/3"] + (0..<999).map { "other/\($0)" })
  }
}
