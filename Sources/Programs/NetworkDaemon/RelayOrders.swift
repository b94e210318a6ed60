// SPDX-License-Identifier: Apache-2.0
import HTTP
import MQTT
import RelayProtocol
import Secrets
import Synchronization

/// Carries out orders of the device process.
struct RelayOrders: Sendable {
  let clients: NetworkClients
  private let pushPatience: Duration
  private let requests = RequestCount()

  /// - Parameter pushPatience: the time limit for one request to a push listener.
  init(clients: NetworkClients, pushPatience: Duration = PushListener.patience) {
    self.clients = clients
    self.pushPatience = pushPatience
  }

  /// - Parameter receipts: those of the messages of a subscription.
  /// - Throws: when the device process has ended the connection.
  func carryOut(
    _ order: RelayOrder, on socket: RelaySocket, _ receipts: AsyncStream<RelayReceipt>
  ) async throws(RelayError) {
    switch order {
    case .send(let request, let trust): try await send(request, trust, socket)
    case .stream(let request, let trust): try await stream(request, trust, socket)
    case .subscribe(let subscription): try await subscribe(subscription, socket, receipts)
    case .listen(let address): try await listen(at: address, socket)
    case .attend:
      try await socket.send(.up)
      for await _ in receipts {}
    }
  }

  private func send(_ request: HTTPRequest, _ trust: RelayTrust, _ socket: RelaySocket) async throws(RelayError) {
    requests.begin()
    defer { requests.end() }
    let response: HTTPResponse
    do throws(HTTPTransportError) { response = try await clients.client(trust, for: request).send(request) } catch {
      return try await socket.send(.failed(error))
    }
    let replies = [.head(response.withoutBody)] + chunks(of: response.body) + [.end(isTruncated: response.isTruncated)]
    try await socket.send(replies.map(\.bytes))
  }

  private func stream(_ request: HTTPRequest, _ trust: RelayTrust, _ socket: RelaySocket) async throws(RelayError) {
    let stream: HTTPResponseStream
    do throws(HTTPTransportError) { stream = try await clients.client(trust, for: request).stream(request) } catch {
      return try await socket.send(.failed(error))
    }
    var head = HTTPResponse(status: stream.status, headers: stream.headers)
    head.certificateExpiry = stream.certificateExpiry
    try await socket.send(.head(head))
    // A stream lasts; making its connection has freed much.
    giveBackFreedMemory()
    var body = stream.body.makeAsyncIterator()
    while true {
      let chunk: [UInt8]?
      do { chunk = try await body.next() } catch {
        return try await socket.send(.failed(error as? HTTPTransportError ?? .unreachable("\(error)")))
      }
      guard let chunk else { return try await socket.send(.end(isTruncated: false)) }
      try await socket.send(chunks(of: chunk).map(\.bytes))
    }
  }

  private func chunks(of body: [UInt8]) -> [RelayReply] {
    stride(from: 0, to: body.count, by: RelayReply.longestChunk).map {
      .chunk(Array(body[$0..<min($0 + RelayReply.longestChunk, body.count)]))
    }
  }

  private func subscribe(
    _ order: RelaySubscription, _ socket: RelaySocket, _ receipts: AsyncStream<RelayReceipt>
  ) async throws(RelayError) {
    let authorities: AuthorityFile?
    do throws(HTTPTransportError) { authorities = try AuthorityFile(order.trust.authorities) } catch {
      return try await socket.send(.ended(.unusable("\(error)")))
    }
    // A place for the answer to each topic, in addition to one message and one report of messages that are too long.
    let (reports, reporting) = AsyncStream.makeStream(
      of: RelayReply.self, bufferingPolicy: .bufferingNewest(16 + 2 * order.topics.count))
    let subscription = order.subscription(authorityFile: authorities?.path)
    let isOversizeReported = Atomic(false)
    let indices = Dictionary(zip(order.topics, order.topics.indices)) { first, _ in first }
    // Messages and reports are sent by one task, in their order.
    let broker = Task {
      let failure = await LocalConnector().run(subscription) { report in
        switch report {
        case .connected(let topic): if let index = indices[topic] { reporting.yield(.subscribed(index)) }
        case .mayNotRead(let topic): if let index = indices[topic] { reporting.yield(.mayNotRead(index)) }
        case .refused(let bytes):
          if !isOversizeReported.exchange(true, ordering: .relaxed) { reporting.yield(.oversize(bytes)) }
        case .disconnected: break
        }
      } _: { message, topic in
        guard let index = indices[topic] else { return false }
        reporting.yield(.message(message, of: index))
        return await receipts.first { _ in true }?.isTaken ?? false
      }
      withExtendedLifetime(authorities) {}
      reporting.yield(.ended(failure))
      reporting.finish()
    }
    let sending: RelayError?
    do throws(RelayError) {
      for await report in reports {
        if case .oversize = report { isOversizeReported.store(false, ordering: .relaxed) }
        try await socket.send(report)
      }
      sending = nil
    } catch { sending = error }
    // Its thread must end first, unless it is stuck in a connect: the process may exit, or the next order connect with
    // the same client ID.
    broker.cancel()
    await broker.value
    if let sending { throw sending }
  }

  private func listen(at text: String, _ socket: RelaySocket) async throws(RelayError) {
    let (hints, hinting) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
    let listener: PushListener
    do {
      guard let address = ListenAddress(text) else { throw RelayError.malformed("the listener's address") }
      listener = try PushListener(at: address, patience: pushPatience) { hinting.yield() }
    } catch {
      return try await socket.send(.refused("\(error)"))
    }
    try await socket.send(.up)
    let listening = Task {
      try? await listener.run()
      hinting.finish()
    }
    defer { listening.cancel() }
    for await _ in hints { try await socket.send(.hint) }
  }
}

/// The number of requests in progress. After the last one, freed memory is given back.
private final class RequestCount: Sendable {
  private let count = Atomic(0)

  func begin() { count.add(1, ordering: .relaxed) }

  func end() {
    guard count.subtract(1, ordering: .relaxed).newValue == 0 else { return }
    giveBackFreedMemory()
  }
}

extension RelaySocket {
  /// Waits while the device process does not read.
  fileprivate func send(_ reply: RelayReply) async throws(RelayError) { try await send(reply.bytes) }
}

extension HTTPResponse {
  fileprivate var withoutBody: HTTPResponse {
    var head = self
    head.body = []
    return head
  }
}
