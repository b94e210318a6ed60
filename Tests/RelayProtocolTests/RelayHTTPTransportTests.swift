// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import Foundation
import HTTP
import Testing

@testable import RelayProtocol

@Suite("HTTP over the relay", .timeLimit(.minutes(5))) struct RelayHTTPTransportTests {
  private static let request = request(deadline: .seconds(30))
  private static let briefRequest = request(deadline: .milliseconds(200))
  private static let head = RelayReply.head(HTTPResponse(status: 200, headers: ["A": "b"]))

  private static func request(deadline: Duration) -> HTTPRequest {
    HTTPRequest(.get, "https://token.example/a", deadline: deadline, maximumBodyBytes: 10)
  }

  private func send(
    _ peer: Peer, _ request: HTTPRequest = request, trust: ServerTrust = ServerTrust()
  ) async throws(HTTPTransportError) -> HTTPResponse {
    try await RelayHTTPTransport(trust: trust, through: peer.relay).send(request)
  }

  @Test("A response arrives in parts") func response() async throws {
    let peer = Peer([.accepted, Self.head, .chunk([1, 2]), .chunk([3]), .end(isTruncated: false)])
    let response = try await send(peer)
    #expect(response == HTTPResponse(status: 200, headers: ["A": "b"], body: [1, 2, 3]))
    #expect(peer.orders == [.send(Self.request, RelayTrust(ServerTrust(), authorities: nil))])
    try await eventually("the order is closed") { peer.hangUps == 1 }
  }

  @Test(
    "What is no response is an error",
    arguments: [
      [], [RelayReply.accepted], [.accepted, head], [.accepted, head, .chunk([1])], [.refused("no")], [head],
      [.accepted, .chunk([1])], [.accepted, .end(isTruncated: false)], [.accepted, head, head], [.accepted, .up],
      [.accepted, head, .hint], [.accepted, head, .message([1], of: 0)], [.accepted, .accepted],
      [.accepted, head, .end(isTruncated: true)], [.accepted, .failed(.canceled)],
      [.accepted, head, .chunk([1]), .failed(.canceled)],
    ], [false, true])
  func noResponse(replies: [RelayReply], closes: Bool) async throws {
    let peer = Peer(replies, closes: closes, patience: .seconds(1))
    let began = ContinuousClock.now
    let error = await #expect(throws: HTTPTransportError.self) { try await send(peer, Self.briefRequest) }
    #expect(error != .canceled)
    // The time to accept the order, or the request's deadline, and what a busy machine takes. The default deadline of a
    // request is 15 s.
    #expect(ContinuousClock.now - began < .seconds(12))
  }

  @Test("A body above the limit is refused, whatever the network process says") func tooLarge() async throws {
    let chunk = RelayReply.chunk([UInt8](repeating: 1, count: 11))
    await #expect(throws: HTTPTransportError.tooLarge(limit: 10)) {
      try await send(Peer([.accepted, Self.head] + Array(repeating: chunk, count: 2000)))
    }
    var request = Self.request
    request.takesBeginning = true
    let parts = [RelayReply.accepted, Self.head, .chunk([UInt8](repeating: 1, count: 10)), .end(isTruncated: true)]
    #expect(try await send(Peer(parts), request).isTruncated)
  }

  @Test("A redirection is refused") func redirected() async throws {
    let head = RelayReply.head(HTTPResponse(status: 302, headers: ["Location": "https://other.example"]))
    await #expect(throws: HTTPTransportError.redirected(to: "https://other.example")) {
      try await send(Peer([.accepted, head, .end(isTruncated: false)]))
    }
  }

  @Test("The error of the network process arrives") func failed() async throws {
    await #expect(throws: HTTPTransportError.untrusted("pin")) {
      try await send(Peer([.accepted, .failed(.untrusted("pin"))]))
    }
  }

  @Test("A request to another server than the account's is not sent") func otherServer() async throws {
    let peer = Peer([RelayReply.accepted])
    let trust = ServerTrust().limited(to: ["https://token.example"])
    for url in ["https://other.example/a", "https://token.example:444/a", "https://token.example@other.example/"] {
      let error = await #expect(throws: HTTPTransportError.self) {
        try await send(peer, HTTPRequest(.get, url), trust: trust)
      }
      guard case .unsendable = error else {
        Issue.record("\(url): \(String(describing: error))")
        continue
      }
    }
    #expect(peer.orders.isEmpty)
  }

  @Test("Without a network process the server is not reachable") func notRunning() async throws {
    let http = RelayHTTPTransport(trust: ServerTrust(), through: Relay(path: "/nonexistent/relay.sock"))
    let error = await #expect(throws: HTTPTransportError.self) { try await http.send(Self.request) }
    guard case .unreachable = error else {
      Issue.record("\(String(describing: error))")
      return
    }
  }

  @Test("Authorities that cannot be read are an error") func authorities() async throws {
    await #expect(throws: HTTPTransportError.self) {
      try await send(Peer([RelayReply.accepted]), trust: ServerTrust(authorityFile: "/nonexistent/ca.pem"))
    }
  }

  @Test("An order has the present contents of the file of authorities") func replacedAuthorities() async throws {
    let file = FileManager.default.temporaryDirectory.appending(path: UUID().uuidString)
    defer { try? FileManager.default.removeItem(at: file) }
    let peer = Peer([.accepted, Self.head, .end(isTruncated: false)])
    let trust = ServerTrust(authorityFile: file.path)
    let http = RelayHTTPTransport(trust: trust, through: peer.relay)
    let contents = [Array("PEM".utf8), [UInt8](repeating: 7, count: 60_000)]
    for bytes in contents {
      try Data(bytes).write(to: file, options: .atomic)
      #expect(try await http.send(Self.request).status == 200)
    }
    #expect(peer.orders == contents.map { RelayOrder.send(Self.request, RelayTrust(trust, authorities: $0)) })
  }

  @Test("A stream delivers its parts, has no deadline after its head, and ends the order when it is released")
  func stream() async throws {
    let peer = Peer([.accepted, Self.head, .chunk([1]), .chunk([2])])
    do {
      let http = RelayHTTPTransport(trust: ServerTrust(), through: peer.relay)
      let stream = try await http.stream(Self.request)
      var body = stream.body.makeAsyncIterator()
      #expect(try await body.next() == [1])
      #expect(try await body.next() == [2])
      let waiting = Task { [stream] in for try await _ in stream.body {} }
      try await Task.sleep(for: .seconds(1))
      #expect(peer.hangUps == 0)
      waiting.cancel()
      _ = try? await waiting.finished()
    }
    try await eventually("the order is closed") { peer.hangUps == 1 }
  }

  @Test("A stream whose network process ends fails") func streamFails() async throws {
    let http = RelayHTTPTransport(
      trust: ServerTrust(), through: Peer([.accepted, Self.head, .chunk([1])], closes: true).relay)
    let stream = try await http.stream(Self.request)
    await #expect(throws: HTTPTransportError.self) { for try await _ in stream.body {} }
  }

  @Test("A canceled request ends the order") func canceled() async throws {
    let peer = Peer([RelayReply.accepted])
    let sending = Task { try await send(peer, HTTPRequest(.get, "https://token.example/", deadline: .seconds(60))) }
    try await eventually("the order arrives") { peer.orders.count == 1 }
    sending.cancel()
    await #expect(throws: HTTPTransportError.canceled) { try await sending.finished() }
    try await eventually("the order is closed") { peer.hangUps == 1 }
  }
}
