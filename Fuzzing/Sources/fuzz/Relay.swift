// SPDX-License-Identifier: Apache-2.0
import Glibc
import HTTP
import MQTT
import UnixSockets

@testable import ControlProtocol
@testable import RelayProtocol

/// Both sides of the socket between the device process and the network process: single messages, and whole
/// conversations of a network process that was taken over.
func readRelay(_ bytes: [UInt8]) {
  let input = Input(bytes, choices: 5)
  switch input.choice {
  case 0:
    guard let order = try? RelayOrder(input.bytes) else { return }
    require((try? RelayOrder(order.bytes)) == order, "an order survives being written")
  case 1:
    guard let reply = try? RelayReply(input.bytes) else { return }
    require((try? RelayReply(reply.bytes)) == reply, "a reply survives being written")
    require(reply.bytes.count <= RelayReply.longest, "a reply has a place in the receiver")
  case 2: converse(input.bytes, sendsRequest)
  case 3: converse(input.bytes, readsStream)
  default: converse(input.bytes, followsSubscription)
  }
}

private let limit = 100

@Sendable private func sendsRequest(_ relay: Relay) async {
  let request = HTTPRequest(.get, "https://token.example/", maximumBodyBytes: limit)
  let http = RelayHTTPTransport(trust: ServerTrust(), through: relay)
  guard let response = try? await http.send(request) else { return }
  require(response.body.count <= limit && !response.isTruncated, "a response is within its bounds")
  require(response.status >= 200, "a response has a final status")
}

@Sendable private func readsStream(_ relay: Relay) async {
  let http = RelayHTTPTransport(trust: ServerTrust(), through: relay)
  guard let stream = try? await http.stream(HTTPRequest(.get, "https://token.example/")) else { return }
  var body = stream.body.makeAsyncIterator()
  while let chunk = try? await body.next() {
    require((1...RelayReply.longestChunk).contains(chunk.count), "a part is within its bounds")
  }
}

@Sendable private func followsSubscription(_ relay: Relay) async {
  let subscription = Subscription(
    broker: Broker(host: "broker.example", trust: ServerTrust()), topics: ["mailbox"], clientID: "t1", presence: nil)
  _ = await RelayConnector(through: relay).run(subscription) { _ in
  } _: { message, topic in
    require(topic == "mailbox", "a message has a topic of the order")
    require(message.count <= Subscriber.maximumMessageBytes, "a message is within its bounds")
    return true
  }
}

/// Runs `body` against a network process that has sent these bytes, and then reads to the end.
private func converse(_ bytes: [UInt8], _ body: @escaping @Sendable (Relay) async -> Void) {
  var ends: [Int32] = [-1, -1]
  guard socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0, &ends) == 0 else { return }
  let (device, network) = (ends[0], ends[1])
  let written = bytes.isEmpty ? 0 : send(network, bytes, bytes.count, Int32(MSG_NOSIGNAL))
  require(written == bytes.count, "the socket takes it")
  shutdown(network, Int32(SHUT_WR))
  wait { await body(Relay { () throws(RelayError) in RelaySocket(UnixSocket(descriptor: device)) }) }
  close(network)
}
