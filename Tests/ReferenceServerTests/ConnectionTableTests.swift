// SPDX-License-Identifier: Apache-2.0
import Synchronization
import Testing

@testable import TokenServerHTTP

@Suite(.timeLimit(.minutes(5)), .mayBlock) struct ConnectionTableTests {
  @Test("Limits") func limits() {
    let table = ConnectionTable(limit: 5, limitPerSource: 2)
    #expect(table.enter(from: "a") && table.enter(from: "a") && !table.enter(from: "a"))
    #expect(table.enter(from: "b"))
    // An event stream frees a slot of its address, but not of the total.
    table.release(from: "a")
    #expect(table.enter(from: "a") && !table.enter(from: "a"))
    #expect(table.enter(from: "c") && !table.enter(from: "d"))
    #expect(table.total == 5)
    #expect(!table.attribute(to: "a"))
    table.leave()
    #expect(table.enter(from: "d"))
  }

  @Test("All /64 of one IPv6 /48 together have at most eight times the connections of one /64") func sites() throws {
    let table = ConnectionTable(limit: 1000, limitPerSource: 2)
    let networks = (0..<16).map { ConnectionSource.name(of: "2001:db8:1:\(String($0, radix: 16))::1") }
    let entered = networks.flatMap { network in (0..<2).map { _ in table.enter(from: network) } }
    #expect(entered.count(where: \.self) == 16 && table.total == 16)
    #expect(table.enter(from: ConnectionSource.name(of: "2001:db8:2::1")))
    #expect(table.enter(from: ConnectionSource.name(of: "192.0.2.1")))
    #expect(!table.enter(from: networks[15]) && !table.attribute(to: networks[15]))
    table.release(from: networks[0])
    #expect(table.attribute(to: networks[15]) && !table.enter(from: networks[0]))
  }

  @Test("The place of a kept connection is given away once") func keptPlaces() {
    let table = ConnectionTable(limit: 2, limitPerSource: 9)
    let closed = Mutex<[String]>([])
    func keep(_ device: String) -> UInt64 { table.keep(for: device) { closed.withLock { $0.append(device) } } }
    #expect(table.enter(from: "s") && table.enter(from: "s"))
    let (first, second) = (keep("a"), keep("b"))
    #expect(table.enter(from: "s") && table.enter(from: "s") && !table.enter(from: "s"))
    #expect(closed.withLock { $0 } == ["a", "b"] && table.total == 4)
    #expect(!table.resume(first) && !table.resume(second))
    for _ in 0..<2 { table.leave(wasEvicted: true) }
    #expect(table.total == 2 && !table.enter(from: "s"))
    // A connection that has a request again is not closed.
    let third = keep("a")
    #expect(table.resume(third) && !table.resume(third) && !table.enter(from: "s"))
  }

  @Test("Few connections are above the limit while others are being closed") func closing() {
    let table = ConnectionTable(limit: 300, limitPerSource: 1000)
    for device in 0..<300 {
      #expect(table.enter(from: "s"))
      _ = table.keep(for: "\(device)") {}
    }
    let entered = (0..<300).filter { _ in table.enter(from: "s") }.count
    #expect(entered == 128 && table.total == 428)
    table.leave(wasEvicted: true)
    #expect(table.enter(from: "s") && !table.enter(from: "s"))
  }
}
