// SPDX-License-Identifier: Apache-2.0
import NIOCore
import NIOHTTP1
import NIOPosix
import NIOSSL
import ReferenceProtocol
import TokenServerCore

/// Sends one `POST` over a separate connection. Checks the addresses of the host name before it connects, and connects
/// to exactly a checked address: DNS rebinding has no effect.
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

  private static var headerLimits: NIOHTTPDecoderLimitConfiguration {
    var limits = NIOHTTPDecoderLimitConfiguration()
    limits.maxHeaderListSize = 65_536
    return limits
  }

  /// Private addresses that may be called.
  let allowed: [AddressRange]
  let group: any EventLoopGroup
  let tls: CallbackTLS

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
    let found = try await value(of: HostResolver.addresses(of: url.bareHost, port: url.port, on: eventLoop))
    let callable = found.filter { Self.mayCall($0.ipAddress ?? "", allowed) }
    guard !callable.isEmpty else { throw AddressRefusedError(address: found.first?.ipAddress ?? "unknown") }
    let status = eventLoop.makePromise(of: UInt.self)
    let deadline = eventLoop.scheduleTask(in: Self.requestTime) { status.fail(TimeoutError()) }
    defer { deadline.cancel() }
    do {
      let channel = try await connect(to: callable.prefix(Self.mostAddresses), on: eventLoop) { channel in
        try addHandlers(to: channel, CallbackExchange(request: request(to: url, headers, body), status: status), url)
      }
      status.futureResult.whenComplete { _ in channel.close(promise: nil) }
    } catch { status.fail(error) }
    // A promise that has already failed ignores this failure.
    return try await withTaskCancellationHandler {
      try await status.futureResult.get()
    } onCancel: {
      status.fail(CancellationError())
    }
  }

  private func connect(
    to addresses: ArraySlice<SocketAddress>, on eventLoop: any EventLoop,
    _ prepare: @escaping @Sendable (any Channel) throws -> Void
  ) async throws -> any Channel {
    var failure: any Error = ChannelError.inappropriateOperationForState
    for address in addresses {
      let connecting = ClientBootstrap(group: eventLoop).connectTimeout(Self.connectTime)
        .channelInitializer { channel in channel.eventLoop.makeCompletedFuture { try prepare(channel) } }
        .connect(to: address)
      do { return try await value(of: connecting) } catch {
        connecting.whenSuccess { $0.close(promise: nil) }
        guard !(error is CancellationError) else { throw error }
        failure = error
      }
    }
    throw failure
  }

  private func addHandlers(to channel: any Channel, _ exchange: CallbackExchange, _ url: CallbackURL) throws {
    let pipeline = channel.pipeline.syncOperations
    if url.isSecure {
      // The server name must not be an address (RFC 6066 §3); the certificate must then contain the address.
      let name = IPAddressBytes.parse(url.bareHost) == nil ? url.host : nil
      try pipeline.addHandler(NIOSSLClientHandler(context: tls.context(), serverHostname: name))
    }
    try pipeline.addHandlers([
      HTTPRequestEncoder(),
      ByteToMessageHandler(HTTPResponseDecoder(limitConfiguration: Self.headerLimits)),
      NIOHTTPRequestHeadersValidator(),
      exchange,
    ])
  }

  private func request(
    to url: CallbackURL, _ headers: HTTPHeaders, _ body: [UInt8]
  ) -> (head: HTTPRequestHead, body: ByteBuffer) {
    var headers = headers
    headers.add(name: "Host", value: url.port == (url.isSecure ? 443 : 80) ? url.host : url.authority)
    headers.add(name: "Content-Length", value: String(body.count))
    headers.add(name: "Connection", value: "close")
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

/// Sends the request as soon as the channel is connected, and reads the response to its end or to 16 KiB, so that
/// an endless response cannot keep the connection.
private final class CallbackExchange: ChannelInboundHandler {
  typealias InboundIn = HTTPClientResponsePart
  typealias OutboundOut = HTTPClientRequestPart

  private struct NoAnswerError: Error, CustomStringConvertible {
    var description: String { "the connection ended without an answer" }
  }

  private let request: (head: HTTPRequestHead, body: ByteBuffer)
  private let status: EventLoopPromise<UInt>
  private var code: UInt?
  private var received = 0

  init(request: (head: HTTPRequestHead, body: ByteBuffer), status: EventLoopPromise<UInt>) {
    self.request = request
    self.status = status
  }

  func channelActive(context: ChannelHandlerContext) {
    context.write(wrapOutboundOut(.head(request.head)), promise: nil)
    context.write(wrapOutboundOut(.body(.byteBuffer(request.body))), promise: nil)
    context.writeAndFlush(wrapOutboundOut(.end(nil)), promise: nil)
    context.fireChannelActive()
  }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    switch unwrapInboundIn(data) {
    case .head(let head): code = head.status.code
    case .body(let bytes):
      received += bytes.readableBytes
      if received > 16_384 { end() }
    case .end: end()
    }
  }

  func channelInactive(context: ChannelHandlerContext) {
    end()
    context.fireChannelInactive()
  }

  func errorCaught(context: ChannelHandlerContext, error: any Error) {
    code == nil ? status.fail(error) : end()
  }

  private func end() {
    guard let code else { return status.fail(NoAnswerError()) }
    status.succeed(code)
  }
}
