// SPDX-License-Identifier: Apache-2.0
/// An HTTP client for one token server. It follows no redirects, stores no cookies, and bounds everything it receives.
/// It does not interpret bodies.
public protocol HTTPTransport: Sendable {
  /// Sends one request and waits for the whole response. Canceling the task aborts the transfer.
  func send(_ request: HTTPRequest) async throws(HTTPTransportError) -> HTTPResponse

  /// Sends one request and returns the body as it arrives, for event streams. Canceling the task aborts the transfer.
  func stream(_ request: HTTPRequest) async throws(HTTPTransportError) -> HTTPResponseStream
}

/// An HTTP request. `url` is absolute and https.
public struct HTTPRequest: Sendable, Equatable {
  public enum Method: String, Sendable, CaseIterable {
    case get = "GET"
    case post = "POST"
    case put = "PUT"
    case patch = "PATCH"
    case delete = "DELETE"
  }

  public var method: Method
  public var url: String
  public var headers: HTTPHeaders
  public var body: [UInt8]
  /// The time limit from the first packet to the last byte of the response; for a stream, to the end of the response's
  /// head.
  public var deadline: Duration
  /// The maximum size of the response's body. A longer body fails with `HTTPTransportError.tooLarge` and is never held
  /// completely. A stream has no limit, because its body is read in pieces.
  public var maximumBodyBytes: Int
  /// Whether a body above the limit is truncated instead of rejected.
  public var takesBeginning = false
  /// Whether to use a new connection instead of an idle one.
  public var wantsNewConnection = false

  public init(
    _ method: Method, _ url: String, headers: HTTPHeaders = [:], body: [UInt8] = [],
    deadline: Duration = .seconds(15), maximumBodyBytes: Int = 1 << 20
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
public struct HTTPHeaders: Sendable, Equatable, ExpressibleByDictionaryLiteral {
  public private(set) var fields: [String: String] = [:]

  public init(dictionaryLiteral elements: (String, String)...) {
    for (name, value) in elements { self[name] = value }
  }

  public subscript(name: String) -> String? {
    get { fields[name.lowercased()] }
    set { fields[name.lowercased()] = newValue }
  }
}

public struct HTTPResponse: Sendable, Equatable {
  public var status: Int
  public var headers: HTTPHeaders
  public var body: [UInt8]
  /// The expiry of the server's certificate in Unix seconds; nil if there was no certificate.
  public var certificateExpiry: Int64?
  /// Whether the body was longer than the request's limit and was truncated.
  public var isTruncated = false

  public init(status: Int, headers: HTTPHeaders = [:], body: [UInt8] = []) {
    self.status = status
    self.headers = headers
    self.body = body
  }
}

/// The head of a response whose body is still arriving. `body` ends when the server ends it and throws a
/// `HTTPTransportError` when the connection fails; each element is the data since the previous one. Only one task may
/// read it. Releasing the stream or canceling that task ends the transfer.
public struct HTTPResponseStream: Sendable {
  public var status: Int
  public var headers: HTTPHeaders
  /// The expiry of the server's certificate, as in `HTTPResponse`.
  public var certificateExpiry: Int64?
  public var body: AsyncThrowingStream<[UInt8], any Error>

  public init(status: Int, headers: HTTPHeaders, body: AsyncThrowingStream<[UInt8], any Error>) {
    self.status = status
    self.headers = headers
    self.body = body
  }
}

/// The reason why there is no usable response. The server may nevertheless have processed the request.
public enum HTTPTransportError: Error, Equatable, Sendable, CustomStringConvertible {
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

  public var description: String {
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
