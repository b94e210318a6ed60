// SPDX-License-Identifier: Apache-2.0
import NIOCore
import NIOHTTP1

/// Enforces the framing of HTTP/1.1 (RFC 9112) that the parser leaves to its user: one `Host`, no chunks in HTTP/1.0,
/// no persistent connection with HTTP/1.0 and after `Connection: close`, no body in a response to HEAD,
/// `Expect: 100-continue`. A request whose address or header is not ASCII is
/// refused: comparing such text can take seconds. While the server drains, each response ends its connection, so that
/// the client's next request goes to another server.
///
/// The parser makes nothing of what follows a request to change the protocol, and keeps it: such a request is the last
/// one of its connection, and what follows it is not read from the socket. A client that sends many requests without
/// waiting for responses loses its connection: an event loop runs all that is ready before it serves other connections.
///
/// It is between the parser and the codec, because the codec drops the version and repeated `Host` fields.
final class FramingHandler: ChannelDuplexHandler, RemovableChannelHandler {
  typealias InboundIn = HTTPServerRequestPart
  typealias InboundOut = HTTPServerRequestPart
  typealias OutboundIn = HTTPServerResponsePart
  typealias OutboundOut = HTTPServerResponsePart

  /// The maximum size of a body for which a client is asked with 100 (Continue), in bytes.
  private let largestBody: Int
  private let readiness: Readiness
  private struct Unanswered {
    let version: HTTPVersion
    let isHead: Bool
    /// Whether its connection has no further request: that of HTTP/1.0, if the client says so, or if it may change the
    /// protocol.
    let isLast: Bool
  }

  /// The maximum number of requests of a connection that wait for their responses.
  static let mostUnanswered = 8

  /// The requests that wait for the end of their responses, oldest first.
  private var unanswered: [Unanswered] = []
  /// Whether the client of the newest request waits for 100 (Continue) before it sends the body.
  private var awaitsContinue = false
  /// Whether the newest request is the last one of its connection.
  private var isLast = false
  /// Whether all that the client still sends is ignored.
  private var isInputEnded = false
  /// Whether the newest request, also if it is ignored, may change the protocol.
  private var mayChangeProtocol = false
  /// Whether nothing more is read from the socket.
  private var isUnread = false
  private var isRefused = false
  /// Whether the response that is being sent says that it is the last one.
  private var isClosing = false

  init(largestBody: Int, readiness: Readiness) {
    self.largestBody = largestBody
    self.readiness = readiness
  }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    let part = unwrapInboundIn(data)
    switch part {
    case .head(let head): mayChangeProtocol = head.mayChangeProtocol
    case .body: break
    case .end: isUnread = mayChangeProtocol
    }
    guard !isInputEnded else { return }
    switch part {
    case .head(let head):
      if isClosing {
        isInputEnded = true
        return
      }
      guard unanswered.count < Self.mostUnanswered else {
        (isInputEnded, isRefused) = (true, true)
        return context.close(promise: nil)
      }
      if let framingError = FramingError(head, largestBody: largestBody) { return refuse(framingError, context) }
      isLast = head.version.isOld || head.closes || head.mayChangeProtocol
      unanswered.append(Unanswered(version: head.version, isHead: head.method == .HEAD, isLast: isLast))
      awaitsContinue = head.expectsContinue
      continueIfExpected(context)
    case .body: awaitsContinue = false
    case .end:
      awaitsContinue = false
      isInputEnded = isLast
    }
    context.fireChannelRead(data)
  }

  func read(context: ChannelHandlerContext) {
    // What the client still sends stays in the kernel's buffers; the deadline of `ConnectionGuard` ends the connection.
    if !isUnread { context.read() }
  }

  /// Sends 100 (Continue) when it is the turn of the newest request.
  private func continueIfExpected(_ context: ChannelHandlerContext) {
    guard awaitsContinue, unanswered.count == 1 else { return }
    awaitsContinue = false
    context.writeAndFlush(wrapOutboundOut(.head(HTTPResponseHead(version: .http1_1, status: .continue))), promise: nil)
  }

  private func refuse(_ error: FramingError, _ context: ChannelHandlerContext) {
    (isInputEnded, isRefused) = (true, true)
    // The client would take this for the response to the request before.
    guard unanswered.isEmpty else { return context.close(promise: nil) }
    let text = ByteBuffer(string: error.text + "\n")
    let head = HTTPResponseHead(
      version: .http1_1, status: error.status,
      headers: ["Connection": "close", "Content-Type": "text/plain", "Content-Length": "\(text.readableBytes)"])
    context.write(wrapOutboundOut(.head(head)), promise: nil)
    context.write(wrapOutboundOut(.body(.byteBuffer(text))), promise: nil)
    context.writeAndFlush(wrapOutboundOut(.end(nil)), promise: nil)
    // The client reads the response first; the deadline of `ConnectionGuard` ends the connection otherwise.
    context.close(mode: .output, promise: nil)
  }

  func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
    guard !isRefused else {
      promise?.fail(ChannelError.ioOnClosedChannel)
      return
    }
    switch unwrapOutboundIn(data) {
    case .head(var head):
      guard let request = unanswered.first else { break }
      // What is already in the pipeline gets its response, too.
      isClosing = request.isLast || (unanswered.count == 1 && readiness.state == .draining)
      // Chunks are not for a client of HTTP/1.0: the body ends with the connection.
      if request.version.isOld { head.version = request.version }
      // The end of a response without a length would be written as a chunk.
      if request.isHead, head.status.mayHaveResponseBody, !head.headers.contains(name: "content-length") {
        head.headers.add(name: "Content-Length", value: "0")
      }
      if isClosing { head.headers.replaceOrAdd(name: "Connection", value: "close") }
      return context.write(wrapOutboundOut(.head(head)), promise: promise)
    case .body:
      // The client would take it for the response to its next request.
      guard unanswered.first?.isHead != true else {
        promise?.succeed(())
        return
      }
    case .end:
      guard !unanswered.isEmpty else { break }
      unanswered.removeFirst()
      context.write(data, promise: promise)
      guard isClosing else { return continueIfExpected(context) }
      context.flush()
      return context.close(mode: .output, promise: nil)
    }
    context.write(data, promise: promise)
  }

  func errorCaught(context: ChannelHandlerContext, error: any Error) {
    // What follows a refused request need not be a request.
    if !isRefused { context.fireErrorCaught(error) }
  }
}

@available(*, unavailable)
extension FramingHandler: Sendable {}

/// Why the head of a request is refused.
private struct FramingError {
  let status: HTTPResponseStatus
  let text: String

  /// - Returns: nil if the head is accepted.
  init?(_ head: HTTPRequestHead, largestBody: Int) {
    let hosts = head.headers["host"]
    let isOld = head.version.isOld
    if !head.isASCII {
      self.init(.badRequest, "the address and all header fields must be ASCII")
    } else if hosts.count > 1 || (hosts.isEmpty && !isOld) || !hosts.allSatisfy(Self.isHost) {
      self.init(.badRequest, "a request has one Host field, which is HOST or HOST:PORT")
    } else if isOld, head.headers.contains(name: "transfer-encoding") {
      self.init(.badRequest, "HTTP/1.0 has no Transfer-Encoding")
    } else if head.expectsContinue, head.headers["content-length"].contains(where: { Int($0) ?? .max > largestBody }) {
      self.init(.payloadTooLarge, "the body is larger than \(largestBody / 1024) KiB")
    } else {
      return nil
    }
  }

  private init(_ status: HTTPResponseStatus, _ text: String) {
    self.status = status
    self.text = text
  }

  /// Whether the bytes can be in a host with a port (RFC 3986 §3.2.2).
  private static func isHost(_ text: String) -> Bool {
    !text.isEmpty
      && text.utf8.allSatisfy { byte in
        (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(byte | 0x20)
          || (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) || "-._~:[]%!$&'()*+,;=".utf8.contains(byte)
      }
  }
}

extension HTTPVersion {
  /// Whether it is earlier than HTTP/1.1.
  fileprivate var isOld: Bool { (major, minor) < (1, 1) }
}

extension HTTPRequestHead {
  fileprivate var isASCII: Bool {
    uri.utf8.allSatisfy { $0 < 0x80 } && headers.allSatisfy { $0.value.utf8.allSatisfy { $0 < 0x80 } }
  }

  /// Whether the client sends no further request (RFC 9112 §9.6).
  fileprivate var closes: Bool {
    headers[canonicalForm: "connection"].contains { $0.lowercased() == "close" }
  }

  /// Whether the parser may take what follows the request for another protocol. It does so for `Upgrade` only if
  /// `Connection` has the token `upgrade`, which it also reads from `Proxy-Connection`.
  fileprivate var mayChangeProtocol: Bool { method == .CONNECT || headers.contains(name: "upgrade") }

  /// Not for HTTP/1.0 (RFC 9110 §10.1.1).
  fileprivate var expectsContinue: Bool {
    !version.isOld && headers[canonicalForm: "expect"].contains { $0.lowercased() == "100-continue" }
  }
}
