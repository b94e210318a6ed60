// SPDX-License-Identifier: Apache-2.0
import NIOCore
import NIOHTTP1

/// A request for a channel with `CallbackExchange`.
struct CallbackRequest: Sendable {
  struct Reply: Sendable {
    let status: UInt
    /// Whether the response is complete, and the portal lets the connection be used again.
    let isReusable: Bool
  }

  let head: HTTPRequestHead
  let body: ByteBuffer
  /// Fails if the connection ends before the head of a response.
  let reply: EventLoopPromise<Reply>
}

/// Sends one request at a time, and reads its response to its end or to 16 KiB, so that an endless response cannot keep
/// the connection.
final class CallbackExchange: ChannelDuplexHandler {
  typealias InboundIn = HTTPClientResponsePart
  typealias OutboundIn = CallbackRequest
  typealias OutboundOut = HTTPClientRequestPart

  /// An outbound event: the time for the response is over. If its head has come, its status counts.
  struct Deadline: Sendable {}

  private struct NoAnswerError: Error, CustomStringConvertible {
    var description: String { "the connection ended without an answer" }
  }

  /// The portal answers with 101.
  private struct OtherProtocolError: Error, CustomStringConvertible {
    var description: String { "the answer changes to another protocol" }
  }

  private static let longestBody = 16_384
  /// The maximum size of the header of a response, in bytes.
  private static let largestHeader = 65_536

  /// The handlers of a connection, from the socket on, without TLS. Its requests are `CallbackRequest`.
  static func handlers() -> [any ChannelHandler] {
    var limits = NIOHTTPDecoderLimitConfiguration()
    limits.maxHeaderListSize = largestHeader
    return [
      HTTPRequestEncoder(), ByteToMessageHandler(HTTPResponseDecoder(limitConfiguration: limits)),
      NIOHTTPRequestHeadersValidator(), CallbackExchange(),
    ]
  }

  /// Nil between two exchanges.
  private var reply: EventLoopPromise<CallbackRequest.Reply>?
  private var head: HTTPResponseHead?
  private var received = 0
  /// Whether nothing more is read from the socket: after a change of the protocol, the parser keeps all that follows.
  private var isUnread = false

  func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
    let request = unwrapOutboundIn(data)
    (reply, head, received) = (request.reply, nil, 0)
    context.write(wrapOutboundOut(.head(request.head)), promise: nil)
    context.write(wrapOutboundOut(.body(.byteBuffer(request.body))), promise: nil)
    context.write(wrapOutboundOut(.end(nil)), promise: promise)
  }

  func triggerUserOutboundEvent(context: ChannelHandlerContext, event: Any, promise: EventLoopPromise<Void>?) {
    guard event is Deadline else { return context.triggerUserOutboundEvent(event, promise: promise) }
    if head != nil { end(isComplete: false) }
    promise?.succeed(())
  }

  func read(context: ChannelHandlerContext) {
    if !isUnread { context.read() }
  }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    // A response without a request.
    guard reply != nil else { return context.close(promise: nil) }
    switch unwrapInboundIn(data) {
    case .head(let head):
      // Of the others below 200, the parser makes nothing.
      guard head.status.code >= 200 else {
        isUnread = true
        return errorCaught(context: context, error: OtherProtocolError())
      }
      self.head = head
    case .body(let bytes):
      received += bytes.readableBytes
      if received > Self.longestBody { end(isComplete: false) }
    case .end: end(isComplete: true)
    }
  }

  func channelInactive(context: ChannelHandlerContext) {
    end(isComplete: false)
    context.fireChannelInactive()
  }

  func errorCaught(context: ChannelHandlerContext, error: any Error) {
    end(isComplete: false, error)
    context.close(promise: nil)
  }

  private func end(isComplete: Bool, _ error: any Error = NoAnswerError()) {
    guard let reply else { return }
    self.reply = nil
    guard let head else { return reply.fail(error) }
    reply.succeed(.init(status: head.status.code, isReusable: isComplete && head.isKeepAlive))
  }
}
