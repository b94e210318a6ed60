// SPDX-License-Identifier: Apache-2.0
import NIOCore
import NIOEmbedded
import NIOHTTP1

@testable import ServerParsers

/// What a portal answers to a callback, whole and in pieces: both must give the same result, and every exchange one.
func readCallbackResponse(_ bytes: [UInt8]) {
  var input = Input([0] + bytes, choices: 1)
  let seed = input.byte()
  let (whole, inPieces) = (exchange([input.bytes]), exchange(pieces(of: input.rest, seed: seed)))
  require(whole?.status == inPieces?.status, "pieces give the same status")
  require(whole?.isReusable == inPieces?.isReusable, "pieces say the same about the connection")
}

/// - Returns: nil if the connection has ended without a response.
private func exchange(_ chunks: [[UInt8]]) -> CallbackRequest.Reply? {
  let channel = EmbeddedChannel(handlers: CallbackExchange.handlers())
  channel.connect(to: address, promise: nil)
  let reply = channel.eventLoop.makePromise(of: CallbackRequest.Reply.self)
  var results: [Result<CallbackRequest.Reply, any Error>] = []
  reply.futureResult.assumeIsolated().whenComplete { results.append($0) }
  let head = HTTPRequestHead(version: .http1_1, method: .POST, uri: "/", headers: ["Content-Length": "2"])
  channel.writeAndFlush(CallbackRequest(head: head, body: ByteBuffer(string: "{}"), reply: reply), promise: nil)
  for chunk in chunks where channel.isActive { _ = try? channel.writeInbound(ByteBuffer(bytes: chunk)) }
  _ = try? channel.finish(acceptAlreadyClosed: true)
  require(results.count == 1, "an exchange has one result")
  let result = try? results[0].get()
  require((0...999).contains(result?.status ?? 0), "a status has three digits")
  return result
}

private let address: SocketAddress = {
  guard let address = try? SocketAddress(ipAddress: "192.0.2.1", port: 80) else { fatalError("no address") }
  return address
}()
