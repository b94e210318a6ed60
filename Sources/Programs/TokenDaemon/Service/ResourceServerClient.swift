// SPDX-License-Identifier: Apache-2.0
import ControlProtocol
import HTTP

/// Sends one request to a resource server, with an access token that is bound to this token's key (RFC 9449).
struct ResourceServerClient: Sendable {
  static let deadline = Duration.seconds(30)

  let http: any HTTPTransport
  /// Adds the access token and the proof, with the resource server's nonce if it has sent one.
  let authorize: @Sendable (HTTPRequest, _ nonce: String?) async throws -> HTTPRequest

  /// - Returns: the response with any status. If the resource server requires a nonce, that of the second request.
  /// - Throws: `CommandError`, and what `authorize` throws.
  func send(_ request: HTTPRequest, to origin: HTTPOrigin) async throws -> HTTPResponse {
    let first = try await exchange(request, nil, origin)
    guard let nonce = first.requiredNonce else { return first }
    return try await exchange(request, nonce, origin)
  }

  private func exchange(_ request: HTTPRequest, _ nonce: String?, _ origin: HTTPOrigin) async throws -> HTTPResponse {
    let request = try await authorize(request, nonce)
    do { return try await http.send(request) } catch {
      if error == .canceled { throw CancellationError() }
      throw CommandError(error, of: origin)
    }
  }
}

extension HTTPResponse {
  /// The nonce with which the request must be sent again (RFC 9449 §9); nil if the response does not require one.
  fileprivate var requiredNonce: String? {
    guard status == 401, headers["WWW-Authenticate"]?.contains("use_dpop_nonce") == true,
      let nonce = headers["DPoP-Nonce"], (1...256).contains(nonce.utf8.count),
      nonce.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F && !"\"\\".utf8.contains($0) })
    else { return nil }
    return nonce
  }
}

extension CommandError {
  /// - Parameter origin: of the resource server; the error's own text is about token servers.
  fileprivate init(_ error: HTTPTransportError, of origin: HTTPOrigin) {
    switch error {
    case .noNetwork(let why): self.init(.unavailable, "this board has no network: \(why)", number: 9000)
    case .unreachable(let why): self.init(.unavailable, "\(origin) cannot be reached: \(why)", number: 9001)
    case .timedOut(let limit): self.init(.unavailable, "\(origin) did not answer within \(limit)", number: 9001)
    case .untrusted(let why):
      self.init(
        .refused,
        "the certificate of \(origin) is not trusted: \(why). If its issuer is a private authority, give that "
          + "authority's PEM file under [tls] in the configuration")
    case .tooLarge(let limit): self.init(.badData, "the response of \(origin) is larger than \(limit) bytes")
    case .redirected(let target):
      self.init(.refused, "\(origin) redirects to \(target), which is not followed; call that address if it is right")
    case .malformed(let why): self.init(.badData, "the response of \(origin) is not valid HTTP: \(why)")
    case .unsendable(let why): self.init(.usage, "the request cannot be sent: \(why)")
    case .canceled: self.init(.unavailable, "the call was canceled")
    }
  }
}
