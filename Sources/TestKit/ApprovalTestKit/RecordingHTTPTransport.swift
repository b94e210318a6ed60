// SPDX-License-Identifier: Apache-2.0
package import HTTP
import Synchronization

/// An HTTP client without a network. It answers with a function and records the requests.
package final class RecordingHTTPTransport: HTTPTransport {
  package typealias Answer = @Sendable (HTTPRequest) throws(HTTPTransportError) -> HTTPResponse

  private let recorded = Mutex<[HTTPRequest]>([])
  private let gate = Mutex<Gate?>(nil)
  private let answer: Answer
  private let makeStream: @Sendable (HTTPRequest) -> HTTPResponseStream

  /// - Parameter stream: answers event streams; by default with a stream that sends nothing.
  package init(
    stream: @escaping @Sendable (HTTPRequest) -> HTTPResponseStream = RecordingHTTPTransport.silentStream,
    answer: @escaping Answer
  ) {
    self.answer = answer
    makeStream = stream
  }

  package var requests: [HTTPRequest] { recorded.withLock { $0 } }

  /// Lets the response to the next request wait at a gate: it is that of the moment of the request.
  package func holdNext() -> Gate {
    let next = Gate()
    gate.withLock { $0 = next }
    return next
  }

  package func send(_ request: HTTPRequest) async throws(HTTPTransportError) -> HTTPResponse {
    recorded.withLock { $0.append(request) }
    let gate = gate.withLock { $0.take() }
    let response = try answer(request)
    await gate?.pass()
    return response
  }

  package func stream(_ request: HTTPRequest) async throws(HTTPTransportError) -> HTTPResponseStream {
    recorded.withLock { $0.append(request) }
    return makeStream(request)
  }

  package static let silentStream: @Sendable (HTTPRequest) -> HTTPResponseStream = { _ in
    HTTPResponseStream(
      status: 200, headers: ["Content-Type": "text/event-stream"], body: AsyncThrowingStream { _ in })
  }
}
