// SPDX-License-Identifier: Apache-2.0
import HTTP
import MQTT
import Secrets
import Testing

@testable import RelayProtocol

@Suite("Relay messages", .timeLimit(.minutes(1))) struct RelayMessageTests {
  static var request: HTTPRequest {
    var request = HTTPRequest(
      .post, "https://token.example/device/v1", headers: ["Accept": "application/json", "DPoP": "proof"],
      body: [1, 2, 3], deadline: .milliseconds(1500), maximumBodyBytes: 4096)
    request.takesBeginning = true
    request.idleLimit = .seconds(600)
    return request
  }

  static let trust = RelayTrust(
    ServerTrust(pins: ["a", "b"], earliestNow: 5, vouchedNow: -7), authorities: Array("PEM".utf8))

  static var subscription: RelaySubscription {
    let broker = Broker(
      host: "broker.example", trust: ServerTrust(pins: ["pin"]),
      credentials: .init(user: "token", password: SecretBytes(copying: [7, 8])), version: .v311)
    return RelaySubscription(
      Subscription(broker: broker, topics: ["mailbox/1", "mailbox/2"], clientID: "t1", presence: "mailbox/1/presence"),
      authorities: nil)
  }

  /// Fails if a stream that is open for days makes an order that the other process rejects.
  @Test("Any limit of idle time becomes an order that can be read") func idleLimits() throws {
    let limits: [(Duration, Duration)] = [
      (.seconds(-5), .zero), (.milliseconds(999), .zero), (.seconds(Int64.max), .seconds(86_400)),
    ]
    for (limit, read) in limits {
      var request = Self.request
      request.idleLimit = limit
      guard case .send(let order, _) = try RelayOrder(RelayOrder.send(request, Self.trust).bytes) else {
        Issue.record("another order")
        continue
      }
      #expect(order.idleLimit == read)
    }
  }

  static let orders: [RelayOrder] = [
    .send(request, trust), .stream(request, trust), .subscribe(subscription), .listen("127.0.0.1:8765"), .attend,
  ]

  static var head: HTTPResponse {
    var head = HTTPResponse(status: 201, headers: ["Content-Type": "text/plain", "Date": "now"])
    head.certificateExpiry = 1_800_000_000
    return head
  }

  static let replies: [RelayReply] =
    [
      .accepted, .refused("why"), .head(head), .chunk([1]), .end(isTruncated: true), .up, .message([], of: 0),
      .message([9], of: 4095), .oversize(70_000), .hint, .subscribed(1), .mayNotRead(2),
    ]
    + [
      HTTPTransportError.noNetwork("a"), .unreachable("b"), .timedOut(after: .seconds(9)), .untrusted("c"),
      .tooLarge(limit: 5), .redirected(to: "d"), .malformed("e"), .unsendable("f"), .canceled,
    ].map { .failed($0) }
    + [
      BrokerError.unreachable("a"), .untrusted("b"), .refused("c"), .mayNotRead(topic: "d"), .unusable("e"), .notTaken,
      .closed,
    ].map { .ended($0) }

  @Test("An order survives being written", arguments: orders) func orderSurvives(order: RelayOrder) throws {
    #expect(try RelayOrder(order.bytes) == order)
  }

  /// Fails if invalid bytes are repaired, which makes a text longer than it was. Found by the fuzzer.
  @Test("A text that is not UTF-8 is refused") func invalidText() {
    let bytes = RelayOrder.listen("127.0.0.1:8765").bytes
    #expect(throws: RelayError.malformed("a text that is not UTF-8")) { try RelayOrder(bytes.dropLast() + [0x80]) }
  }

  @Test("A reply survives being written", arguments: replies) func replySurvives(reply: RelayReply) throws {
    #expect(try RelayReply(reply.bytes) == reply)
  }

  @Test("Every beginning of a message, and every longer one, is refused") func truncated() {
    for message in Self.orders.map(\.bytes) {
      for count in 0..<message.count {
        #expect(throws: RelayError.self) { try RelayOrder(Array(message.prefix(count))) }
      }
      #expect(throws: RelayError.self) { try RelayOrder(message + [0]) }
    }
    for message in Self.replies.map(\.bytes) {
      for count in 0..<message.count {
        #expect(throws: RelayError.self) { try RelayReply(Array(message.prefix(count))) }
      }
      #expect(throws: RelayError.self) { try RelayReply(message + [0]) }
    }
  }

  @Test("An order of another version is refused as such") func otherVersion() {
    #expect(throws: RelayError.version) { try RelayOrder([RelayOrder.version + 1, 4]) }
  }

  @Test("The bounds of the network hold again") func bounds() throws {
    func isRefused(_ reply: RelayReply) -> Bool { (try? RelayReply(reply.bytes)) == nil }
    #expect(isRefused(.chunk([])))
    #expect(isRefused(.chunk([UInt8](repeating: 0, count: RelayReply.longestChunk + 1))))
    #expect(isRefused(.message([UInt8](repeating: 0, count: Subscriber.maximumMessageBytes + 1), of: 0)))
    for topic in [-1, 4096] {
      #expect(isRefused(.message([], of: topic)) && isRefused(.subscribed(topic)) && isRefused(.mayNotRead(topic)))
    }
    #expect(isRefused(.oversize(-1)))
    #expect(isRefused(.head(HTTPResponse(status: 100))))
    #expect(isRefused(.head(HTTPResponse(status: -1))))
    let value = String(repeating: "v", count: 40_000)
    #expect(isRefused(.head(HTTPResponse(status: 200, headers: ["A": value, "B": value]))))
    #expect(!isRefused(.head(HTTPResponse(status: 200, headers: ["A": value]))))
    let reason = String(repeating: "\u{1B}[31m\u{202E}long", count: 1000)
    guard case .failed(.unreachable(let text)) = try RelayReply(RelayReply.failed(.unreachable(reason)).bytes) else {
      Issue.record("another reply")
      return
    }
    #expect(text.unicodeScalars.count <= 501)
    #expect(!text.unicodeScalars.contains("\u{1B}") && !text.unicodeScalars.contains("\u{202E}"))
  }

  @Test("Credentials of a broker arrive, and are compared") func credentials() throws {
    let arrived = Self.subscription.subscription(authorityFile: "/a")
    #expect(arrived.broker.credentials?.user == "token")
    #expect(arrived.broker.credentials?.password.withExposedSecret { Array($0) } == [7, 8])
    #expect(arrived.broker.trust.authorityFile == "/a")
    #expect(arrived.broker.version == .v311)
  }
}
