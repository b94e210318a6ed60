// SPDX-License-Identifier: Apache-2.0
import NIOCore
import NIOHTTP1
import NIOPosix
import NIOSSL
import ReferenceProtocol
import TokenServerCore
import TokenServerHTTP

/// Sends one `POST` at a time over a connection. Checks the addresses of the host name for each, and uses only a
/// connection to exactly a checked address: DNS rebinding has no effect.
struct CallbackConnection: Sendable {
  /// The portal's name resolves only to private addresses that the configuration does not allow.
  struct AddressRefusedError: Error, CustomStringConvertible {
    let address: String
    var description: String {
      "the address \(address) is loopback, link-local or private, and not in callback_private_addresses"
    }
  }

  struct TimeoutError: Error, CustomStringConvertible {
    var description: String { "no answer within 10 s" }
  }

  /// The time limit from the first connection attempt to the response.
  private static let requestTime = TimeAmount.seconds(10)
  private static let connectTime = TimeAmount.seconds(3)
  /// The maximum number of addresses that are tried for one name.
  private static let mostAddresses = 3

  private let allowed: [AddressRange]
  private let group: any EventLoopGroup
  private let tls: CallbackTLS
  private let pool = CallbackPool()

  /// - Parameter allowed: private addresses that may be called.
  init(allowed: [AddressRange], group: any EventLoopGroup, tls: CallbackTLS) {
    self.allowed = allowed
    self.group = group
    self.tls = tls
  }

  static func mayCall(_ address: String, _ allowed: [AddressRange]) -> Bool {
    // A link-local address may end with `%` and its interface.
    guard let bytes = IPAddressBytes.parse(String(address.prefix { $0 != "%" })) else { return false }
    let plain = PrivateAddress.withoutEmbedding(bytes)
    return !PrivateAddress.contains(plain) || allowed.contains { $0.contains(plain) || $0.contains(bytes) }
  }

  /// - Returns: the HTTP status.
  /// - Throws: `AddressRefusedError`, before any connection, if no address may be called.
  func post(_ body: [UInt8], to url: CallbackURL, headers: HTTPHeaders) async throws -> UInt {
    let eventLoop = group.next()
    return try await withTaskExecutorPreference(EventLoopExecutor(loop: eventLoop)) {
      let found = try await value(of: HostResolver.addresses(of: url.bareHost, port: url.port, on: eventLoop))
      let callable = found.filter { Self.mayCall($0.ipAddress ?? "", allowed) }
      guard !callable.isEmpty else { throw AddressRefusedError(address: found.first?.ipAddress ?? "unknown") }
      let keys = callable.prefix(Self.mostAddresses).map { CallbackPool.Key(url, at: $0, on: eventLoop) }
      return try await send(request(to: url, headers, body), to: url, over: keys, on: eventLoop)
    }
  }

  /// Uses a connection again, or a new one. If the portal has closed the former meanwhile, uses a new one.
  private func send(
    _ request: Request, to url: CallbackURL, over keys: [CallbackPool.Key], on eventLoop: any EventLoop
  ) async throws -> UInt {
    let latest = eventLoop.now + Self.requestTime
    for key in keys {
      guard let connection = pool.take(key, at: eventLoop.now) else { continue }
      do { return try await exchange(request, on: connection, key, until: latest) } catch {
        if error is TimeoutError || error is CancellationError { throw error }
        break
      }
    }
    let (channel, key) = try await connect(to: keys, on: eventLoop) { try addHandlers(to: $0, url) }
    return try await exchange(request, on: .init(channel: channel, openedAt: eventLoop.now), key, until: latest)
  }

  /// - Throws: if there is no head of a response.
  private func exchange(
    _ request: Request, on connection: CallbackPool.Connection, _ key: CallbackPool.Key, until latest: NIODeadline
  ) async throws -> UInt {
    let channel = connection.channel
    let reply = channel.eventLoop.makePromise(of: CallbackRequest.Reply.self)
    let deadline = channel.eventLoop.scheduleTask(deadline: latest) {
      channel.triggerUserOutboundEvent(CallbackExchange.Deadline(), promise: nil)
      // If the response has not begun.
      reply.fail(TimeoutError())
    }
    defer { deadline.cancel() }
    channel.writeAndFlush(CallbackRequest(head: request.head, body: request.body, reply: reply))
      .cascadeFailure(to: reply)
    do {
      // A promise that has already failed ignores another failure.
      let reply = try await withTaskCancellationHandler {
        try await reply.futureResult.get()
      } onCancel: {
        reply.fail(CancellationError())
      }
      if reply.isReusable { pool.put(connection, for: key) } else { connection.close() }
      return reply.status
    } catch {
      connection.close()
      throw error
    }
  }

  private func connect(
    to keys: [CallbackPool.Key], on eventLoop: any EventLoop,
    _ prepare: @escaping @Sendable (any Channel) throws -> Void
  ) async throws -> (any Channel, CallbackPool.Key) {
    var failure: any Error = ChannelError.inappropriateOperationForState
    for key in keys {
      let connecting = ClientBootstrap(group: eventLoop).connectTimeout(Self.connectTime)
        .channelInitializer { channel in channel.eventLoop.makeCompletedFuture { try prepare(channel) } }
        .connect(to: key.address)
      do { return (try await value(of: connecting), key) } catch {
        connecting.whenSuccess { $0.close(promise: nil) }
        guard !(error is CancellationError) else { throw error }
        failure = error
      }
    }
    throw failure
  }

  private func addHandlers(to channel: any Channel, _ url: CallbackURL) throws {
    let pipeline = channel.pipeline.syncOperations
    if url.isSecure {
      // The server name must not be an address (RFC 6066 §3); the certificate must then contain the address.
      let name = IPAddressBytes.parse(url.bareHost) == nil ? url.host : nil
      try pipeline.addHandler(NIOSSLClientHandler(context: tls.context(), serverHostname: name))
    }
    try pipeline.addHandlers(CallbackExchange.handlers())
  }

  private typealias Request = (head: HTTPRequestHead, body: ByteBuffer)

  private func request(to url: CallbackURL, _ headers: HTTPHeaders, _ body: [UInt8]) -> Request {
    var headers = headers
    headers.add(name: "Host", value: url.port == (url.isSecure ? 443 : 80) ? url.host : url.authority)
    headers.add(name: "Content-Length", value: String(body.count))
    return (
      HTTPRequestHead(version: .http1_1, method: .POST, uri: url.target, headers: headers), ByteBuffer(bytes: body)
    )
  }

  /// Returns the future's value, or throws `CancellationError` as soon as the task is canceled.
  private func value<Value: Sendable>(of future: EventLoopFuture<Value>) async throws -> Value {
    let promise = future.eventLoop.makePromise(of: Value.self)
    future.cascade(to: promise)
    return try await withTaskCancellationHandler {
      try await promise.futureResult.get()
    } onCancel: {
      promise.fail(CancellationError())
    }
  }
}
