// SPDX-License-Identifier: Apache-2.0
public import HTTP
import Synchronization

/// An HTTP client without a network. It answers with a function and records the requests.
public final class RecordingHTTPTransport: HTTPTransport {
  public typealias Answer = @Sendable (HTTPRequest) throws(HTTPTransportError) -> HTTPResponse

  private let recorded = Mutex<[HTTPRequest]>([])
  private let answer: Answer
  private let makeStream: @Sendable (HTTPRequest) -> HTTPResponseStream

  /// - Parameter stream: answers event streams; by default with a stream that sends nothing.
  public init(
    stream: @escaping @Sendable (HTTPRequest) -> HTTPResponseStream = RecordingHTTPTransport.silentStream,
    answer: @escaping Answer
  ) {
    self.answer = answer
    makeStream = stream
  }

  public var requests: [HTTPRequest] { recorded.withLock { $0 } }

  public func send(_ request: HTTPRequest) async throws(HTTPTransportError) -> HTTPResponse {
    recorded.withLock { $0.append(request) }
    return try answer(request)
  }

  public func stream(_ request: HTTPRequest) async throws(HTTPTransportError) -> HTTPResponseStream {
    recorded.withLock { $0.append(request) }
    return makeStream(request)
  }

  public static let silentStream: @Sendable (HTTPRequest) -> HTTPResponseStream = { _ in
    HTTPResponseStream(
      status: 200, headers: ["Content-Type": "text/event-stream"], body: AsyncThrowingStream { _ in })
  }
}
