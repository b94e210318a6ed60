/// Carries HTTP requests to one token server and answers back. Knows no JSON and no meaning.
///
/// A courier follows no redirect, keeps no cookie, and bounds everything it receives.
public protocol Courier: Sendable {
  /// Sends one request and waits for the whole answer. Cancelling the task aborts the transfer.
  func send(_ request: HTTPRequest) async throws(CourierError) -> HTTPResponse

  /// Sends one request and hands over the body as it arrives, for event streams. Cancelling aborts the transfer.
  func stream(_ request: HTTPRequest) async throws(CourierError) -> HTTPResponseStream
}

/// One request. `url` is absolute and https.
public struct HTTPRequest: Sendable, Equatable {
  public enum Method: String, Sendable { case get = "GET", post = "POST", put = "PUT", delete = "DELETE" }

  public var method: Method
  public var url: String
  public var headers: HTTPHeaders
  public var body: [UInt8]
  /// From the first packet to the last byte of the answer; for a stream, to the end of the answer's head.
  public var deadline: Duration
  /// An answer with a longer body is refused with `CourierError.tooLarge` and never held whole. A stream has no such
  /// limit: its reader takes it piece by piece.
  public var maximumBodyBytes: Int
  /// Of a longer body its beginning is taken, instead of refusing it.
  public var takesBeginning = false
  /// Over a connection that nothing was sent over before.
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

/// Header fields. Names compare without case (RFC 9110 §5.1); a repeated field keeps its last value.
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
  /// Unix seconds: when the certificate that this came with expires; nil where there was none.
  public var certificateExpiry: Int64?
  /// The body was longer than the request's limit; this is its beginning.
  public var isCut = false

  public init(status: Int, headers: HTTPHeaders = [:], body: [UInt8] = []) {
    self.status = status
    self.headers = headers
    self.body = body
  }
}

/// The head of an answer whose body is still arriving. `body` ends when the server ends it and throws a
/// `CourierError` when the connection breaks; each element is what arrived since the last. One task reads it; letting go
/// of it, or cancelling that task, ends the transfer.
public struct HTTPResponseStream: Sendable {
  public var status: Int
  public var headers: HTTPHeaders
  /// As in `HTTPResponse`.
  public var certificateExpiry: Int64?
  public var body: AsyncThrowingStream<[UInt8], any Error>

  public init(status: Int, headers: HTTPHeaders, body: AsyncThrowingStream<[UInt8], any Error>) {
    self.status = status
    self.headers = headers
    self.body = body
  }
}

/// Why nothing usable came back. Says nothing about whether the server acted on the request.
public enum CourierError: Error, Equatable, Sendable, CustomStringConvertible {
  /// No route, no name, refused, broken off, or the TLS handshake did not complete.
  case unreachable(String)
  case timedOut(after: Duration)
  /// The certificate is not one we trust; the text says why (pin, expiry, host name, issuer).
  case untrusted(String)
  case tooLarge(limit: Int)
  /// 3xx with a Location. Never followed: a token server that moves must be enrolled again.
  case redirected(to: String)
  case malformed(String)
  /// The request itself: not an https address, or a header field that would break out of its line.
  case unsendable(String)
  /// The task was cancelled, or the courier closed.
  case cancelled

  public var description: String {
    switch self {
    case .unreachable(let reason): "the token server cannot be reached: \(reason)"
    case .timedOut(let duration): "the token server did not answer within \(duration)"
    case .untrusted(let reason): "the token server's certificate is not trusted: \(reason)"
    case .tooLarge(let limit): "the token server's answer is larger than \(limit) bytes and was refused"
    case .redirected(let target): "the token server redirected to \(target), which is never followed"
    case .malformed(let reason): "the token server's answer is not valid HTTP: \(reason)"
    case .unsendable(let reason): "the request cannot be sent: \(reason)"
    case .cancelled: "the request was cancelled"
    }
  }
}
