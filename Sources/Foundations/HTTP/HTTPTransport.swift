// SPDX-License-Identifier: Apache-2.0
/// An HTTP client for one token server. It follows no redirects, stores no cookies, and bounds everything it receives.
/// It does not interpret bodies.
package protocol HTTPTransport: Sendable {
  /// Sends one request and waits for the whole response. Canceling the task aborts the transfer. Only a GET is repeated
  /// if the connection is lost: of any other request, the server gets one copy at most.
  func send(_ request: HTTPRequest) async throws(HTTPTransportError) -> HTTPResponse

  /// Sends one request and returns the body as it arrives, for event streams. Canceling the task aborts the transfer.
  func stream(_ request: HTTPRequest) async throws(HTTPTransportError) -> HTTPResponseStream
}

/// An HTTP request. `url` is absolute and https.
package struct HTTPRequest: Sendable, Equatable {
  package enum Method: String, Sendable, CaseIterable {
    case get = "GET"
    case post = "POST"
    case put = "PUT"
    case patch = "PATCH"
    case delete = "DELETE"
  }

  package static let defaultDeadline = Duration.seconds(15)
  /// libcurl's default.
  package static let defaultIdleLimit = Duration.seconds(118)
  package static let maximumIdleSeconds = 86_400

  package var method: Method
  package var url: String
  package var headers: HTTPHeaders
  package var body: [UInt8]
  /// The time limit from the first packet to the last byte of the response; for a stream, to the end of the response's
  /// head.
  package var deadline: Duration
  /// The maximum size of the response's body. A longer body fails with `HTTPTransportError.tooLarge` and is never held
  /// completely. A stream has no limit, because its body is read in pieces.
  package var maximumBodyBytes: Int
  /// Whether a body above the limit is truncated instead of rejected.
  package var takesBeginning = false
  /// How long a connection may have been idle to be used; below a second, a new connection is opened. A NAT or a proxy
  /// on the way may have forgotten one that has been idle for longer: a request would wait for its deadline.
  package var idleLimit = defaultIdleLimit
  /// `idleLimit` in whole seconds, 0 to `maximumIdleSeconds`.
  package var idleSeconds: Int { Int(max(0, min(idleLimit.components.seconds, Int64(Self.maximumIdleSeconds)))) }

  package init(
    _ method: Method, _ url: String, headers: HTTPHeaders = [:], body: [UInt8] = [],
    deadline: Duration = defaultDeadline, maximumBodyBytes: Int = 1 << 20
  ) {
    self.method = method
    self.url = url
    self.headers = headers
    self.body = body
    self.deadline = deadline
    self.maximumBodyBytes = maximumBodyBytes
  }
}

/// Header fields. Names are case-insensitive (RFC 9110 §5.1); a repeated field keeps its last value.
package struct HTTPHeaders: Sendable, Equatable, ExpressibleByDictionaryLiteral {
  package private(set) var fields: [String: String] = [:]

  package init(dictionaryLiteral elements: (String, String)...) {
    for (name, value) in elements { self[name] = value }
  }

  package subscript(name: String) -> String? {
    get { fields[name.lowercased()] }
    set { fields[name.lowercased()] = newValue }
  }
}

package struct HTTPResponse: Sendable, Equatable {
  package var status: Int
  package var headers: HTTPHeaders
  package var body: [UInt8]
  /// The expiry of the server's certificate in Unix seconds; nil if there was no certificate.
  package var certificateExpiry: Int64?
  /// Whether the body was longer than the request's limit and was truncated.
  package var isTruncated = false

  package init(status: Int, headers: HTTPHeaders = [:], body: [UInt8] = []) {
    self.status = status
    self.headers = headers
    self.body = body
  }
}

/// The head of a response whose body is still arriving. `body` ends when the server ends it and throws a
/// `HTTPTransportError` when the connection fails; each element is the data since the previous one. Only one task may
/// read it. Releasing the stream or canceling that task ends the transfer.
package struct HTTPResponseStream: Sendable {
  package var status: Int
  package var headers: HTTPHeaders
  /// The expiry of the server's certificate, as in `HTTPResponse`.
  package var certificateExpiry: Int64?
  package var body: AsyncThrowingStream<[UInt8], any Error>

  package init(status: Int, headers: HTTPHeaders, body: AsyncThrowingStream<[UInt8], any Error>) {
    self.status = status
    self.headers = headers
    self.body = body
  }
}

/// The reason why there is no usable response. The server may nevertheless have processed the request.
package enum HTTPTransportError: Error, Equatable, Sendable, CustomStringConvertible {
  /// This machine has no network: no route, or no interface with an address. Nothing was sent.
  case noNetwork(String)
  /// Unknown name, connection refused or lost, or the TLS handshake failed.
  case unreachable(String)
  case timedOut(after: Duration)
  /// The certificate is not trusted; the text gives the reason (pin, expiry, host name, issuer).
  case untrusted(String)
  case tooLarge(limit: Int)
  /// A 3xx status with a Location. Never followed: after a move of the token server the account must be enrolled again.
  case redirected(to: String)
  case malformed(String)
  /// The request is invalid: not an https address, or a header field with a control character.
  case unsendable(String)
  /// The task was canceled, or the HTTP client was closed.
  case canceled

  package var description: String {
    switch self {
    case .noNetwork(let reason): "this machine has no network connection: \(reason)"
    case .unreachable(let reason): "the token server cannot be reached: \(reason)"
    case .timedOut(let duration): "the token server did not answer within \(duration)"
    case .untrusted(let reason): "the token server's certificate is not trusted: \(reason)"
    case .tooLarge(let limit): "the token server's answer is larger than \(limit) bytes and was refused"
    case .redirected(let target): "the token server redirected to \(target), which is never followed"
    case .malformed(let reason): "the token server's answer is not valid HTTP: \(reason)"
    case .unsendable(let reason): "the request cannot be sent: \(reason)"
    case .canceled: "the request was canceled"
    }
  }
}
