// SPDX-License-Identifier: Apache-2.0
import NIOCore
import ReferenceProtocol
import Testing

@testable import ReferenceServer
@testable import TokenServerCore
@testable import TokenServerHTTP

@Suite(.timeLimit(.minutes(5)), .mayBlock) struct EventHubTests {
  private func request(_ id: String) -> DeviceEvent { DeviceEvent(.request, transactionID: id) }

  /// Fails if a device that registers and never connects costs memory until the server stops.
  @Test("Events are remembered only for devices that have connected, until they are removed") func onlyConnected() {
    let hub = EventHub()
    func count() -> String? {
      hub.events(of: ClientID("c"), after: nil).cursor.split(separator: ".").last.map(String.init)
    }
    hub.publish(request("1"), to: ClientID("c"))
    #expect(count() == "0")
    hub.publish(request("2"), to: ClientID("c"))
    #expect(count() == "1")
    hub.remove(ClientID("c"))
    hub.publish(request("3"), to: ClientID("c"))
    #expect(count() == "0")
  }

  @Test("Resumed from a cursor") func resumedFromACursor() {
    let hub = EventHub()
    let start = hub.events(of: ClientID("c"), after: nil).cursor
    hub.publish(request("1"), to: ClientID("c"))
    let afterFirst = hub.events(of: ClientID("c"), after: nil).cursor
    hub.publish(request("2"), to: ClientID("c"))
    #expect(hub.events(of: ClientID("c"), after: start).events == [request("1"), request("2")])
    #expect(hub.events(of: ClientID("c"), after: afterFirst).events == [request("2")])
    #expect(hub.events(of: ClientID("other"), after: nil).events.isEmpty)
  }

  @Test("A strange cursor means read the list", arguments: ["", "x", "0.0", "1.2.3", "99999"])
  func aStrangeCursorMeansReadTheList(cursor: String) {
    #expect(EventHub().events(of: ClientID("c"), after: cursor).events == [DeviceEvent(.resync)])
  }

  @Test("A cursor of an earlier process or of the future means read the list")
  func aCursorOfAnEarlierProcessOrOfTheFutureMeansReadTheList() {
    let (hub, earlier) = (EventHub(), EventHub())
    #expect(
      hub.events(of: ClientID("c"), after: earlier.events(of: ClientID("c"), after: nil).cursor).events == [
        DeviceEvent(.resync)
      ])
    let epoch = hub.events(of: ClientID("c"), after: nil).cursor.split(separator: ".")[0]
    #expect(hub.events(of: ClientID("c"), after: "\(epoch).7").events == [DeviceEvent(.resync)])
  }

  @Test("Too long away means read the list") func tooLongAwayMeansReadTheList() {
    let hub = EventHub()
    let start = hub.events(of: ClientID("c"), after: nil).cursor
    for number in 1...EventHistory.remembered { hub.publish(request("\(number)"), to: ClientID("c")) }
    #expect(hub.events(of: ClientID("c"), after: start).events.count == EventHistory.remembered)
    hub.publish(request("one too many"), to: ClientID("c"))
    #expect(hub.events(of: ClientID("c"), after: start).events == [DeviceEvent(.resync)])
  }

  private static let drainTime = Duration.seconds(2)

  /// Drains a hub with five connections.
  /// - Parameter isReading: whether a connection is closed as soon as it has ended.
  /// - Returns: the times from the start to the ends, in order.
  private func drainedEnds(isReading: Bool) async -> [Duration] {
    let (hub, start) = (EventHub(), ContinuousClock.now)
    let ends = await withTaskGroup(of: Duration.self) { group in
      for number in 0..<5 {
        let subscription = hub.listen(ClientID("c\(number)"), isStream: number > 0, after: nil)
        group.addTask {
          for await _ in subscription.frames {}
          if isReading { subscription.cancel() }
          return ContinuousClock.now - start
        }
      }
      await hub.drain(within: Self.drainTime)
      return await group.reduce(into: [Duration]()) { $0.append($1) }
    }
    #expect(ContinuousClock.now - start >= Self.drainTime)
    #expect(ends.allSatisfy { $0 >= Self.drainTime / 2 } && ends.count == 5)
    return ends.sorted()
  }

  /// Drains up to twenty times until more than `limit` passes between an end and the last one. One of several times is
  /// enough: a busy machine may end connections late, and then at the same moment.
  /// - Parameter first: the index of that end, in the order of the ends.
  private func expectSpread(from first: Int, isReading: Bool, beyond limit: Duration) async {
    var spread = Duration.zero
    for _ in 1...20 where spread <= limit {
      let ends = await drainedEnds(isReading: isReading)
      spread = ends[4] - ends[first]
    }
    #expect(spread > limit)
  }

  @Test("While the server drains, connections end one after the other in the second half of the time") func draining()
    async
  {
    await expectSpread(from: 0, isReading: true, beyond: Self.drainTime / 4)
  }

  /// Fails if the same connection is ended again while others stay until the end of the time.
  @Test("While the server drains, a connection whose client does not read is ended once") func drainingSlowClients()
    async
  {
    await expectSpread(from: 1, isReading: false, beyond: Self.drainTime / 5)
  }

  @Test("A newer stream ends the older") func aNewerStreamEndsTheOlder() async throws {
    let hub = EventHub()
    let older = hub.listen(ClientID("c"), isStream: true, after: nil)
    let newer = hub.listen(ClientID("c"), isStream: true, after: nil)
    for await _ in older.frames { Issue.record("the older stream got a frame") }
    // The end of the older stream must not end the newer one.
    older.cancel()
    #expect(hub.isListening(ClientID("c")))
    hub.publish(request("1"), to: ClientID("c"))
    var frames = newer.frames.makeAsyncIterator()
    let frame = try #require(await frames.next().map { String(buffer: $0) })
    let data = try #require(frame.firstRange(of: "event: request\ndata: ")).upperBound
    #expect(frame.hasSuffix("\n\n"))
    let event = try JSON.decode(DeviceEvent.self, from: Array(frame[data...].utf8))
    #expect(event.kind == .request && event.transactionID == "1")
    // Fails if the device's next request needs a second attempt for a nonce.
    #expect(event.dpopNonce.map(hub.nonces.isFresh) == true)
    newer.cancel()
    #expect(!hub.isListening(ClientID("c")))
  }

  @Test("Heartbeats go to streams only") func heartbeatsGoToStreamsOnly() async {
    let hub = EventHub()
    let stream = hub.listen(ClientID("a"), isStream: true, after: nil)
    let poll = hub.listen(ClientID("b"), isStream: false, after: nil)
    #expect(hub.connected == (streams: 1, polls: 1))
    hub.sendHeartbeats()
    hub.close()
    #expect(await stream.frames.reduce(into: []) { $0.append(String(buffer: $1)) } == [":\n\n"])
    #expect(await poll.frames.reduce(into: 0) { count, _ in count += 1 } == 0)
  }

  @Test("Who does not read loses the stream but misses nothing") func whoDoesNotReadLosesTheStreamButMissesNothing()
    async
  {
    let hub = EventHub()
    let stream = hub.listen(ClientID("c"), isStream: true, after: nil)
    for number in 1...100 { hub.publish(request("\(number)"), to: ClientID("c")) }
    #expect(await stream.frames.reduce(into: 0) { count, _ in count += 1 } == 32)
    #expect(hub.events(of: ClientID("c"), after: stream.missed.cursor).events == [DeviceEvent(.resync)])
  }

  @Test("There is no listener after the end") func thereIsNoListenerAfterTheEnd() async {
    let hub = EventHub()
    hub.close()
    let late = hub.listen(ClientID("c"), isStream: true, after: nil)
    for await _ in late.frames { Issue.record("a frame after the end") }
    #expect(!hub.isListening(ClientID("c")))
  }

  @Test("Rings are not lost") func ringsAreNotLost() async {
    let wakeUp = AsyncSignal()
    // A signal before the wait ends it immediately; without a signal the wait lasts as long as requested.
    for hasRung in [true, false, true] {
      if hasRung { wakeUp.ring() }
      let began = ContinuousClock.now
      await wakeUp.wait(for: .milliseconds(hasRung ? 120_000 : 50))
      let waited = ContinuousClock.now - began
      #expect(hasRung ? waited < .seconds(60) : waited >= .milliseconds(50))
    }
  }
}
