// SPDX-License-Identifier: Apache-2.0
import HTTP
import MQTT
import ProgramHarness
import Testing

/// Which brokers are trusted and which connections succeed, and the error messages of the others.
@Suite("Brokers refused", .timeLimit(.minutes(5)))
struct TrustTests {
  enum Expected: Sendable {
    case connected
    case untrusted(String)
    case refused(String)
    case unreachable(String)
    case unusable(String)
    case mayNotRead
  }

  enum Pin: Sendable { case none, right, wrong }

  struct Row: Sendable, CustomTestStringConvertible {
    let what: String
    var host = "localhost"
    /// A file in the broker's directory.
    var authority: String? = "ca.pem"
    var pin = Pin.none
    var password: String? = TestBroker.password
    var topic = "mailbox/1"
    var clientID = "token1"
    var version = Broker.Version.v5
    let expected: Expected
    var testDescription: String { "\(what), \(version)" }
  }

  static let rows: [Row] = [
    Row(what: "authority", expected: .connected),
    Row(what: "authority and pin", pin: .right, expected: .connected),
    Row(what: "pin instead of authority", authority: nil, pin: .right, expected: .connected),
    Row(what: "wrong authority", authority: "other-ca.pem", expected: .untrusted("unable to get local issuer")),
    Row(what: "no authority", authority: nil, expected: .untrusted("unable to get local issuer")),
    Row(what: "wrong pin", pin: .wrong, expected: .untrusted("none of the pinned")),
    Row(what: "wrong pin, no authority", authority: nil, pin: .wrong, expected: .untrusted("local issuer")),
    Row(what: "wrong host", host: "127.0.0.1", expected: .untrusted("IP address mismatch")),
    Row(what: "wrong host, right pin", host: "127.0.0.1", pin: .right, expected: .untrusted("IP address mismatch")),
    Row(what: "unreadable authority", authority: "nowhere.pem", expected: .unusable("nowhere.pem")),
    Row(what: "unknown name", host: "no..name", expected: .unreachable("name")),
    Row(what: "wrong password", password: "wrong", expected: .refused("user or password")),
    Row(what: "wrong password", password: "wrong", version: .v311, expected: .refused("user or password")),
    Row(what: "no password", password: nil, expected: .refused("user or password")),
    Row(what: "no password", password: nil, version: .v311, expected: .refused("user or password")),
    Row(what: "not ours to read", topic: "mailbox/2", expected: .mayNotRead),
    Row(what: "not ours to read", topic: "mailbox/2", version: .v311, expected: .mayNotRead),
    Row(what: "not a topic", topic: "", expected: .unusable("topic")),
    Row(what: "many topics", topic: "mailbox/#", expected: .unusable("topic")),
    Row(what: "no client id", clientID: "", expected: .unusable("client id")),
  ]

  @Test("Each with its reason") func eachWithItsReason() async throws {
    let broker = try await TestBroker(readable: "mailbox/1")
    for row in Self.rows { try await verify(row, at: broker) }
  }

  private func verify(_ row: Row, at broker: TestBroker) async throws {
    let wrong = try await broker.pin(of: "other-ca")
    var trust = ServerTrust(authorityFile: row.authority.map(broker.directory.file))
    switch row.pin {
    case .none: break
    case .right: trust.pins = [wrong, try await broker.pin()]
    case .wrong: trust.pins = [wrong]
    }
    let reached = Observed(Subscriber.Report?.none)
    let mailbox = Subscriber(
      at: broker.broker(host: row.host, trust: trust, password: row.password, version: row.version),
      topics: [row.topic], clientID: row.clientID, random: { 0 },
      report: { report in reached.change { $0 = $0 ?? report } },
      sleep: { _ in throw CancellationError() })
    let listening = Task { try await mailbox.run { _, _ in true } }
    let first = await reached.first(within: patience) { $0 }
    listening.cancel()
    switch (first, row.expected) {
    case (.connected, .connected), (.disconnected(.mayNotRead, _), .mayNotRead): break
    case (.disconnected(.untrusted(let reason), _), .untrusted(let part)),
      (.disconnected(.refused(let reason), _), .refused(let part)),
      (.disconnected(.unreachable(let reason), _), .unreachable(let part)),
      (.disconnected(.unusable(let reason), _), .unusable(let part)):
      #expect(reason.contains(part), "\(row.testDescription)")
    default: Issue.record("\(row.testDescription): \(String(describing: first)) instead of \(row.expected)")
    }
  }
}
