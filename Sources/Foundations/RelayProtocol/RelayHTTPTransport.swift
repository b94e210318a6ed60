// SPDX-License-Identifier: Apache-2.0
package import HTTP
import Synchronization

/// An HTTP client whose requests the network process sends. It checks every bound again: of the destination, of sizes,
/// and of time.
package final class RelayHTTPTransport: HTTPTransport {
  /// How much later than the network process this one gives up, so that a late response has the reason of the former.
  private static let grace = Duration.milliseconds(500)

  private let relay: Relay
  private let trust: ServerTrust

  package init(trust: ServerTrust, through relay: Relay) {
    self.trust = trust
    self.relay = relay
  }

  package func send(_ request: HTTPRequest) async throws(HTTPTransportError) -> HTTPResponse {
    let order = RelayOrder.send(request, try relayTrust(for: request))
    do throws(RelayError) {
      let socket = try await relay.open(order)
      // As in the network process, whose time begins now.
      let due = ContinuousClock.now + request.deadline + Self.grace
      var response = try await socket.head(until: due)
      while let chunk = try await socket.chunk(until: due, isTruncated: &response.isTruncated) {
        response.body += chunk
        guard response.body.count <= request.maximumBodyBytes else {
          throw .failed(.tooLarge(limit: request.maximumBodyBytes))
        }
      }
      guard !response.isTruncated || request.takesBeginning else { throw .malformed("a truncated body") }
      return response
    } catch { throw HTTPTransportError(error, request) }
  }

  package func stream(_ request: HTTPRequest) async throws(HTTPTransportError) -> HTTPResponseStream {
    let order = RelayOrder.stream(request, try relayTrust(for: request))
    do throws(RelayError) {
      let socket = try await relay.open(order)
      let due = ContinuousClock.now + request.deadline + Self.grace
      let head = try await socket.head(until: due)
      let pace = Mutex(RelayPace())
      let body = AsyncThrowingStream<[UInt8], any Error> {
        do throws(RelayError) {
          var isTruncated = false
          try await RelayPace.sleep(for: pace.withLock { $0.rest() })
          return try await socket.chunk(until: nil, isTruncated: &isTruncated)
        } catch { throw HTTPTransportError(error, request) }
      }
      var stream = HTTPResponseStream(status: head.status, headers: head.headers, body: body)
      stream.certificateExpiry = head.certificateExpiry
      return stream
    } catch { throw HTTPTransportError(error, request) }
  }

  /// The trust with the present contents of the file of authorities, which may be replaced at any time.
  private func relayTrust(for request: HTTPRequest) throws(HTTPTransportError) -> RelayTrust {
    try trust.check(request)
    guard let file = trust.authorityFile else { return RelayTrust(trust, authorities: nil) }
    guard let bytes = readAuthorities(file) else {
      throw .untrusted("\(file) is not a readable file with certificates")
    }
    return RelayTrust(trust, authorities: bytes)
  }
}

extension RelaySocket {
  fileprivate func head(until due: ContinuousClock.Instant) async throws(RelayError) -> HTTPResponse {
    switch try await reply(until: due) {
    case .head(let response):
      if (300..<400).contains(response.status), let target = response.headers["Location"] {
        throw .failed(.redirected(to: String(target.prefix(256))))
      }
      return response
    case .failed(let error): throw .failed(error)
    case let other: throw .malformed("\(other.name) in place of a head")
    }
  }

  /// - Returns: nil at the end of the body.
  fileprivate func chunk(
    until due: ContinuousClock.Instant?, isTruncated: inout Bool
  ) async throws(RelayError) -> [UInt8]? {
    switch try await reply(until: due) {
    case .chunk(let bytes): return bytes
    case .end(let wasTruncated):
      isTruncated = wasTruncated
      return nil
    case .failed(let error): throw .failed(error)
    case let other: throw .malformed("\(other.name) in a body")
    }
  }
}

extension HTTPTransportError {
  /// The error for a request that the network process did not carry out.
  fileprivate init(_ error: RelayError, _ request: HTTPRequest) {
    self =
      switch error {
      // The network process cannot cancel tasks of this one.
      case .failed(.canceled): .unreachable("the network process is ending")
      case .failed(let error): error
      case .timedOut: .timedOut(after: request.deadline)
      case .canceled: .canceled
      case .malformed, .tooLong: .malformed("\(error)")
      case .notRunning, .notAnswering, .closed, .version, .refused, .call: .unreachable("\(error)")
      }
  }
}
