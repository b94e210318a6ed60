// SPDX-License-Identifier: Apache-2.0
import MQTT
import ProgramHarness
import Testing

/// Messages of a real mosquitto broker, with TLS and a password.
@Suite("Delivery", .timeLimit(.minutes(5)))
struct DeliveryTests {
  @Test("A message arrives, once", arguments: [Broker.Version.v311, .v5])
  func messageArrivesOnce(version: Broker.Version) async throws {
    let broker = try await TestBroker()
    let consumer = Consumer(of: broker.broker(version: version))
    try await consumer.isConnected()
    try await broker.publish("one", to: "mailbox/1")
    try await broker.publish("of another mailbox", to: "mailbox/2")
    try await broker.publish("two", to: "mailbox/1")
    try await consumer.got(["one", "two"])
    try await broker.acknowledged(2)
    await consumer.stop()
    let next = Consumer(of: broker.broker(version: version))
    try await next.isConnected()
    try await broker.publish("three", to: "mailbox/1")
    try await next.got(["three"])
  }

  @Test("Messages published during a disconnection are queued", arguments: [Broker.Version.v311, .v5])
  func messagesPublishedDuringADisconnectionAreQueued(version: Broker.Version) async throws {
    let broker = try await TestBroker()
    let first = Consumer(of: broker.broker(version: version))
    try await first.isConnected()
    await first.stop()
    for text in ["one", "two", "three"] { try await broker.publish(text, to: "mailbox/1") }
    try await Consumer(of: broker.broker(version: version)).got(["one", "two", "three"])
  }

  @Test("A message that was not stored is delivered again", arguments: [Broker.Version.v311, .v5])
  func messageThatWasNotStoredIsDeliveredAgain(version: Broker.Version) async throws {
    let broker = try await TestBroker()
    let tries = Observed(0)
    let consumer = Consumer(
      of: broker.broker(version: version),
      takes: { text in
        guard text == "two" else { return true }
        tries.change { $0 += 1 }
        return tries.value == 3
      })
    try await consumer.isConnected()
    for text in ["one", "two"] { try await broker.publish(text, to: "mailbox/1") }
    try await consumer.got(["one", "two", "two", "two"])
    try await broker.publish("three", to: "mailbox/1")
    try await consumer.got(["one", "two", "two", "two", "three"])
    #expect(consumer.seen.value.reports.count { $0 == .disconnected(.notTaken, retryIn: .milliseconds(500)) } == 1)
  }

  /// When they are delivered again, all three are in one TLS record, and libmosquitto queues their PUBACKs before its
  /// first callback.
  @Test("Messages after one that was not stored are not acknowledged either")
  func messagesAfterOneThatWasNotStoredAreNotAcknowledgedEither() async throws {
    let broker = try await TestBroker()
    let away = Consumer(of: broker.broker())
    try await away.isConnected()
    await away.stop()
    for text in ["one", "two", "three"] { try await broker.publish(text, to: "mailbox/1") }
    let refuser = Consumer(
      of: broker.broker(), sleep: { _ in try await Task.sleep(for: .seconds(3600)) }, takes: { _ in false })
    try await refuser.sees("a pause") { !$0.pauses.isEmpty }
    #expect(refuser.seen.value.messages == ["one"])
    await refuser.stop()
    try await Consumer(of: broker.broker()).got(["one", "two", "three"])
  }

  @Test("A message in processing when the task is canceled is delivered again")
  func messageInProcessingWhenTheTaskIsCanceledIsDeliveredAgain() async throws {
    let broker = try await TestBroker()
    let looking = Observed(false)
    let slow = Consumer(
      of: broker.broker(),
      takes: { _ in
        looking.change { $0 = true }
        // Returns after the cancellation, with a result that must then be ignored.
        try? await Task.sleep(for: .seconds(3600))
        return true
      })
    try await slow.isConnected()
    try await broker.publish("one", to: "mailbox/1")
    #expect(await looking.first(within: patience) { $0 ? true : nil } == true)
    await slow.stop()
    try await Consumer(of: broker.broker()).got(["one"])
  }

  @Test("Retained messages are ignored") func retainedMessagesAreIgnored() async throws {
    for version in [Broker.Version.v311, .v5] {
      let broker = try await TestBroker()
      try await broker.publish("old", to: "mailbox/1", "-r")
      let consumer = Consumer(of: broker.broker(version: version))
      try await consumer.isConnected()
      try await broker.publish("new", to: "mailbox/1")
      try await consumer.got(["new"])
    }
  }

  @Test(
    "A message that is too long is dropped without delaying others",
    arguments: [
      (.v311, [.connected(topic: "mailbox/1"), .refused(bytes: 16_385)]),
      (.v5, [.connected(topic: "mailbox/1")]),
    ] as [(Broker.Version, [Subscriber.Report])])
  func messageThatIsTooLongIsDroppedWithoutDelayingOthers(
    version: Broker.Version, reports: [Subscriber.Report]
  ) async throws {
    let broker = try await TestBroker()
    let consumer = Consumer(of: broker.broker(version: version))
    try await consumer.isConnected()
    let longest = String(repeating: "x", count: Subscriber.maximumMessageBytes)
    // In MQTT 5 the broker enforces the limit, which includes the packet's header.
    try await broker.publish(longest + (version == .v5 ? String(repeating: "x", count: 1024) : "x"), to: "mailbox/1")
    try await broker.publish(longest, to: "mailbox/1")
    try await consumer.got([longest])
    #expect(consumer.seen.value.reports == reports)
  }
}
