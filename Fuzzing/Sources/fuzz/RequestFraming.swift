// SPDX-License-Identifier: Apache-2.0
import NIOCore
import NIOEmbedded
import NIOHTTP1

@testable import ServerParsers

/// Connections to the token server, whole and in pieces, through NIO's parser and `FramingHandler`: both must make the
/// same requests and responses. The first byte selects when the requests are answered.
func readRequests(_ bytes: [UInt8]) {
  var input = Input(bytes, choices: Moment.allCases.count)
  let seed = input.byte()
  let moment = Moment.allCases[input.choice]
  let (whole, inPieces) = (serve([input.bytes], moment), serve(pieces(of: input.rest, seed: seed), moment))
  require(whole.requests == inPieces.requests, "pieces make the same requests")
  require(whole.responses == inPieces.responses, "pieces get the same responses")
}

/// When a request is answered.
private enum Moment: CaseIterable { case afterHead, afterBody, atEndOfInput }

/// - Returns: the requests that the server has received, and the heads of the responses that the client has.
private func serve(_ chunks: [[UInt8]], _ moment: Moment) -> (requests: [Request], responses: [HTTPResponseHead]) {
  let (socket, server) = (Socket(), Server(answering: moment))
  var limits = NIOHTTPDecoderLimitConfiguration()
  limits.maxHeaderFieldCount = 64
  let channel = EmbeddedChannel(handlers: [
    socket, ByteToMessageHandler(HTTPRequestDecoder(limitConfiguration: limits)),
    FramingHandler(largestBody: 1024, readiness: Readiness()), server,
  ])
  for chunk in chunks { _ = try? channel.writeInbound(ByteBuffer(bytes: chunk)) }
  channel.pipeline.fireUserInboundEventTriggered(EndOfInput())
  _ = try? channel.finish(acceptAlreadyClosed: true)
  check(server.requests, socket.heads)
  return (server.requests, socket.heads)
}

private func check(_ requests: [Request], _ responses: [HTTPResponseHead]) {
  let final = responses.filter { $0.status != .continue }
  require(final.count <= requests.count + 1, "a request has one response, and one more can be refused")
  for (request, response) in zip(requests, final) {
    require(request.isOld == (response.version != .http1_1), "a response is of its request's version")
    require(!request.isOld || response.headers["connection"] == ["close"], "HTTP/1.0 ends with one request")
  }
  require(requests.dropLast().allSatisfy { !$0.isOld }, "no request follows one of HTTP/1.0")
  let expecting = requests.count { !$0.isOld && $0.head.headers.contains(name: "expect") }
  require(responses.count - final.count <= expecting, "100 is for those who expect it")
}

private struct EndOfInput {}

private struct Request: Equatable {
  let head: HTTPRequestHead
  var body: [UInt8] = []
  var isComplete = false

  /// Whether it is earlier than HTTP/1.1.
  var isOld: Bool { (head.version.major, head.version.minor) < (1, 1) }

  init(_ head: HTTPRequestHead) {
    self.head = head
    let hosts = head.headers["host"]
    require(hosts.count == 1 || (hosts.isEmpty && isOld), "a request has one host")
    require(hosts.allSatisfy { !$0.isEmpty && !$0.contains { "/?#@ \\".contains($0) } }, "a host is one")
    let texts = [head.uri] + head.headers.map(\.value)
    require(texts.allSatisfy { $0.utf8.allSatisfy { $0 < 0x80 } }, "a request is ASCII")
    require(!isOld || !head.headers.contains(name: "transfer-encoding"), "HTTP/1.0 has no chunks")
  }
}

/// Receives and answers requests in place of Hummingbird.
private final class Server: ChannelInboundHandler {
  typealias InboundIn = HTTPServerRequestPart
  typealias OutboundOut = HTTPServerResponsePart

  private let moment: Moment
  private(set) var requests: [Request] = []

  init(answering moment: Moment) { self.moment = moment }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    switch unwrapInboundIn(data) {
    case .head(let head):
      require(requests.last?.isComplete ?? true, "a request begins after another one")
      requests.append(Request(head))
      if moment == .afterHead { answer(context) }
    case .body(let bytes): requests[requests.count - 1].body += bytes.readableBytesView
    case .end:
      requests[requests.count - 1].isComplete = true
      if moment == .afterBody { answer(context) }
    }
  }

  func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
    if moment == .atEndOfInput { for _ in requests { answer(context) } }
  }

  func errorCaught(context: ChannelHandlerContext, error: any Error) {}

  private func answer(_ context: ChannelHandlerContext) {
    context.write(wrapOutboundOut(.head(HTTPResponseHead(version: .http1_1, status: .ok))), promise: nil)
    context.write(wrapOutboundOut(.body(.byteBuffer(ByteBuffer(string: "ok")))), promise: nil)
    context.writeAndFlush(wrapOutboundOut(.end(nil)), promise: nil)
  }
}

/// What is sent to the client. Its output can be closed alone, which an embedded channel does not have.
private final class Socket: ChannelOutboundHandler {
  typealias OutboundIn = HTTPServerResponsePart
  typealias OutboundOut = HTTPServerResponsePart

  private(set) var heads: [HTTPResponseHead] = []
  private var isOpen = true
  private var isInResponse = false

  func write(context: ChannelHandlerContext, data: NIOAny, promise: EventLoopPromise<Void>?) {
    require(isOpen, "nothing is sent after the end of the output")
    switch unwrapOutboundIn(data) {
    case .head(let head):
      require(!isInResponse, "a response begins after another one")
      heads.append(head)
      isInResponse = head.status != .continue
    case .body: require(isInResponse, "a body has a head")
    case .end:
      require(isInResponse, "an end has a head")
      isInResponse = false
    }
    promise?.succeed(())
  }

  func flush(context: ChannelHandlerContext) {}

  func close(context: ChannelHandlerContext, mode: CloseMode, promise: EventLoopPromise<Void>?) {
    isOpen = false
    if mode == .output { promise?.succeed(()) } else { context.close(mode: mode, promise: promise) }
  }
}
