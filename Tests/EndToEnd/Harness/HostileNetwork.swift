// SPDX-License-Identifier: Apache-2.0
import ControlProtocol
import Glibc
import HTTP
import ProgramHarness
import RelayProtocol
import Synchronization
import Threads
import UnixSockets

/// A program in place of the network process. It passes orders on to a real one, or answers them with anything.
final class HostileNetwork: Sendable {
  enum Trick: String, CaseIterable, Sendable {
    case never, silentAfterAcceptance, garbage, oversized, endless, replayed, swapped, reordered, doubled, changed
    case cutOff, forged, ended
  }

  /// What becomes of an order that is not answered by a trick.
  enum Treatment: Sendable {
    case unanswered
    case passed([UInt8])
    /// For a request whose whole response is wanted. An error leaves the order without an answer.
    case answered(by: @Sendable () async throws -> HTTPResponse)
  }

  private struct State {
    /// The probability that an order is answered by a trick.
    var share = 0.0
    /// How long an order waits.
    var delay = Duration.zero
    var dice: Dice
    /// The replies to former orders.
    var former: [[[UInt8]]] = []
    var played: [Trick: Int] = [:]
  }

  private let socket: UnixSocket
  private let real: String
  private let treat: @Sendable ([UInt8]) -> Treatment
  private let state: Mutex<State>

  /// - Parameters:
  ///   - path: where the device process connects.
  ///   - real: the socket of a real network process.
  ///   - treat: reads each order, and says what becomes of it.
  init(
    at path: String, before real: String, dice: Dice = .fresh(),
    treat: @escaping @Sendable ([UInt8]) -> Treatment = { .passed($0) }
  ) throws {
    self.treat = treat
    socket = try UnixSocket.listening(at: path)
    self.real = real
    state = Mutex(State(dice: dice))
    let descriptor = socket.descriptor
    Task.detached { [weak self, socket] in
      // The descriptor is waited for: it must not be closed, and be another's, before the wait has ended.
      defer { withExtendedLifetime(socket) {} }
      while await SocketPoller.shared.wait(for: descriptor, .reading) == .ready {
        let caller = accept(descriptor, nil, nil)
        guard caller >= 0, let self else { break }
        Task.detached { try? await self.serve(UnixSocket(descriptor: caller)) }
      }
    }
  }

  /// Ends the listener.
  func end() { shutdown(socket.descriptor, Int32(SHUT_RDWR)) }

  /// The share of orders that are answered by a trick, 0 to 1.
  var share: Double {
    get { state.withLock { $0.share } }
    set { state.withLock { $0.share = newValue } }
  }

  /// How long an order waits before it is treated.
  var delay: Duration {
    get { state.withLock { $0.delay } }
    set { state.withLock { $0.delay = newValue } }
  }

  /// How often each trick was played.
  var played: [Trick: Int] { state.withLock { $0.played } }

  private func serve(_ caller: UnixSocket) async throws {
    let device = RelaySocket(caller)
    guard let order = try await device.receive(atMost: RelayOrder.longest) else { return }
    if delay > .zero { try await Task.sleep(for: delay) }
    guard state.withLock({ Double.random(in: 0..<1, using: &$0.dice) < $0.share }) else {
      switch treat(order) {
      case .passed(let order): return try await pass(order, device)
      case .answered(let response): try await answer(device, response)
      case .unanswered: break
      }
      _ = try await device.receive(atMost: RelayReceipt.size)
      return
    }
    let trick = state.withLock { state in
      let trick = Trick.allCases.randomElement(using: &state.dice) ?? .never
      state.played[trick, default: 0] += 1
      return trick
    }
    try await play(trick, order, device, caller.descriptor)
    // Most tricks leave the connection open, for as long as the device process waits.
    _ = try await device.receive(atMost: RelayReceipt.size)
  }

  /// Passes messages on in both directions, and remembers the replies.
  private func pass(_ order: [UInt8], _ device: RelaySocket) async throws {
    let network = try RelaySocket.connected(to: real)
    try await network.send(order)
    let receipts = Task.detached {
      while let receipt = try? await device.receive(atMost: RelayReceipt.size) { try? await network.send(receipt) }
      network.end()
    }
    defer { device.end() }
    var replies: [[UInt8]] = []
    while let reply = try await network.receive(atMost: RelayReply.longest) {
      if replies.count < 100 { replies.append(reply) }
      try await device.send(reply)
    }
    state.withLock { if $0.former.count < 1000 { $0.former.append(replies) } }
    receipts.cancel()
  }

  private func answer(_ device: RelaySocket, _ response: () async throws -> HTTPResponse) async throws {
    try await device.send(RelayReply.accepted.bytes)
    let response = try await response()
    try await device.send(RelayReply.head(response).bytes)
    if !response.body.isEmpty { try await device.send(RelayReply.chunk(response.body).bytes) }
    try await device.send(RelayReply.end(isTruncated: response.isTruncated).bytes)
  }

  /// The replies of the real network process, as far as they come within a second.
  private func replies(to order: [UInt8]) async throws -> [[UInt8]] {
    let network = try RelaySocket.connected(to: real)
    try await network.send(order)
    var replies: [[UInt8]] = []
    let due = ContinuousClock.now + .seconds(1)
    while let reply = try? await network.receive(atMost: RelayReply.longest, until: due) { replies.append(reply) }
    return replies
  }

  private func random(_ range: Range<Int>) -> Int { state.withLock { Int.random(in: range, using: &$0.dice) } }

  private func play(_ trick: Trick, _ order: [UInt8], _ device: RelaySocket, _ descriptor: Int32) async throws {
    func send(_ replies: [[UInt8]]) async throws { for reply in replies { try await device.send(reply) } }
    let accepted = RelayReply.accepted.bytes
    switch trick {
    case .never: break
    case .silentAfterAcceptance: try await device.send(accepted)
    case .garbage: try await send((0..<20).map { _ in (0..<random(0..<300)).map { _ in UInt8(random(0..<256)) } })
    case .oversized:
      try await device.send(accepted)
      _ = sendAll(([255, 255, 255, 255] + [UInt8](repeating: 7, count: 60_000))[...], to: descriptor)
    case .endless:
      try await send([accepted, RelayReply.head(HTTPResponse(status: 200, headers: Self.eventStream)).bytes])
      let chunk = RelayReply.chunk([UInt8](repeating: UInt8(ascii: ":"), count: RelayReply.longestChunk)).bytes
      while true { try await device.send(chunk) }
    case .replayed:
      let former = state.withLock { $0.former.randomElement(using: &$0.dice) }
      try await send(former ?? [])
    case .swapped:
      // The replies to the order before this one.
      let before = state.withLock { $0.former.last }
      let present = try await replies(to: order)
      state.withLock { $0.former.append(present) }
      try await send(before ?? [])
    case .reordered:
      let replies = try await replies(to: order)
      try await send(state.withLock { replies.shuffled(using: &$0.dice) })
    case .doubled: try await send(try await replies(to: order).flatMap { [$0, $0] })
    case .changed:
      var replies = try await replies(to: order)
      if let index = replies.indices.last(where: { replies[$0].count > 20 }) {
        replies[index][random(0..<replies[index].count)] ^= UInt8(1 << random(0..<8))
      }
      try await send(replies)
    case .cutOff:
      let replies = try await replies(to: order)
      try await send(Array(replies.prefix(random(0..<(replies.count + 1)))))
      device.end()
    case .forged: try await send([accepted] + forgery())
    case .ended: device.end()
    }
  }

  private static let eventStream: HTTPHeaders = ["Content-Type": "text/event-stream"]

  /// A response as a server might send it, but that none has sent.
  private func forgery() -> [[UInt8]] {
    let bodies = [
      #"{"state":"authenticated","receipt":"AAAA"}"#, #"{"transactions":[]}"#, "[]", "{}",
      #"{"access_token":"x","token_type":"DPoP","expires_in":900}"#, #"{"error":"invalid_grant"}"#,
      #"{"type":"about:blank","title":"gone","status":410,"number":9002}"#,
    ]
    let statuses = [200, 201, 204, 302, 400, 401, 403, 404, 409, 410, 429, 500]
    var response = HTTPResponse(status: statuses[random(0..<statuses.count)])
    response.headers = ["Content-Type": "application/json", "Date": "Sun, 06 Nov 2050 08:49:37 GMT"]
    response.certificateExpiry = .max
    return [
      RelayReply.head(response).bytes, RelayReply.chunk(Array(bodies[random(0..<bodies.count)].utf8)).bytes,
      RelayReply.end(isTruncated: false).bytes,
    ]
  }
}
