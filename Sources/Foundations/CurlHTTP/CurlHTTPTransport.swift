// SPDX-License-Identifier: Apache-2.0
package import HTTP

/// An HTTP client with libcurl: one thread, which sleeps until data arrives, and reused connections.
///
/// Proxies are taken from the environment (`https_proxy`, `no_proxy`). Otherwise only `ServerTrust` and the request
/// have an effect: no `.netrc`, no cookies, no redirects, no compression.
package final class CurlHTTPTransport: HTTPTransport, Sendable {
  private let thread: CurlThread
  private let trust: ServerTrust

  /// Creates the client without starting its thread. The first request starts it.
  package init(trust: ServerTrust) {
    thread = CurlThread(trust: trust)
    self.trust = trust
  }

  package func send(_ request: HTTPRequest) async throws(HTTPTransportError) -> HTTPResponse {
    let (delivery, head) = try await open(request, deadlineCovers: .wholeAnswer)
    guard head.saysWhereItEnds else { throw .malformed("a response without a length") }
    let limit = request.maximumBodyBytes
    if let announced = head.headers["Content-Length"].flatMap({ Int($0) }), announced > limit, !request.takesBeginning {
      throw .tooLarge(limit: limit)
    }
    var response = head
    while let chunk = try await delivery.nextChunk() {
      let room = limit - response.body.count
      response.body += chunk.prefix(room)
      guard chunk.count > room else { continue }
      guard request.takesBeginning else { throw .tooLarge(limit: limit) }
      response.isTruncated = true
      break
    }
    return response
  }

  package func stream(_ request: HTTPRequest) async throws(HTTPTransportError) -> HTTPResponseStream {
    let (delivery, head) = try await open(request, deadlineCovers: .headOnly)
    let body = AsyncThrowingStream { try await delivery.nextChunk() }
    var stream = HTTPResponseStream(status: head.status, headers: head.headers, body: body)
    stream.certificateExpiry = head.certificateExpiry
    return stream
  }

  /// Whether the thread has reacted since the last call, or has nothing to do. For a watchdog: one call asks, the next
  /// one has the result.
  package func hasReacted() -> Bool { thread.hasReacted() }

  /// Ends every transfer with `HTTPTransportError.canceled`, closes the connections and ends the thread. Later requests
  /// also fail with `canceled`. Takes milliseconds. Must not be called from a cancellation handler. A client closes
  /// itself when it and its streams are released.
  package func close() {
    thread.end()
  }

  private func open(
    _ request: HTTPRequest, deadlineCovers scope: TransferOrder.DeadlineScope
  ) async throws(HTTPTransportError) -> (Delivery, head: HTTPResponse) {
    try trust.check(request)
    try request.checkSendable()
    let order = TransferOrder(request: request, deadlineScope: scope)
    let delivery = Delivery(of: order, by: thread)
    let head = try await delivery.head()
    if (300..<400).contains(head.status), let target = head.headers["Location"] {
      throw .redirected(to: String(target.prefix(256)))
    }
    return (delivery, head)
  }
}

extension HTTPResponse {
  /// libcurl treats the end of a connection as the end of a response even without TLS's close_notify. An attacker on
  /// the network can cause that. RFC 9112 §9.8 requires close_notify; this client requires a length instead, which all
  /// HTTP/1.1 servers in use send.
  fileprivate var saysWhereItEnds: Bool {
    headers["Content-Length"] != nil || headers["Transfer-Encoding"] != nil || status == 204 || status == 304
  }
}

extension HTTPRequest {
  fileprivate func checkSendable() throws(HTTPTransportError) {
    // libcurl copies header lines unchanged, so a line break would start another field (RFC 9110 §5.5).
    for (name, value) in headers.fields where !name.utf8.allSatisfy(\.isTokenByte) || name.isEmpty {
      throw .unsendable("\"\(name)\" is not a header field name (value of \(value.utf8.count) bytes)")
    }
    for (name, value) in headers.fields where value.utf8.contains(where: { $0 < 0x20 && $0 != 0x09 || $0 == 0x7F }) {
      throw .unsendable("the header field \(name) has a control character in it")
    }
  }
}

extension UInt8 {
  /// `tchar` of RFC 9110 §5.6.2.
  fileprivate var isTokenByte: Bool {
    switch self {
    case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"), 0x30...0x39: true
    default: "!#$%&'*+-.^_`|~".utf8.contains(self)
    }
  }
}
