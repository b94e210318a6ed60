// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import ControlProtocol
import HTTP
import Testing

@testable import TokenDaemon

@Suite(.timeLimit(.minutes(5))) struct ResourceServerClientTests {
  private static let challenge = HTTPResponse(
    status: 401, headers: ["WWW-Authenticate": "DPoP error=\"use_dpop_nonce\"", "DPoP-Nonce": "n1"])

  private let request = HTTPRequest(.post, "https://bank.example/a", body: [1])

  private func send(_ http: RecordingHTTPTransport) async throws -> HTTPResponse {
    let origin = try #require(HTTPOrigin("https://bank.example"))
    return try await ResourceServerClient(http: http) { request, nonce in
      var request = request
      request.headers["DPoP"] = "proof \(nonce ?? "-")"
      return request
    }.send(request, to: origin)
  }

  @Test("A nonce is used once, with the same request") func nonce() async throws {
    let http = RecordingHTTPTransport { request throws(HTTPTransportError) in
      request.headers["DPoP"] == "proof n1" ? HTTPResponse(status: 200, body: [7]) : Self.challenge
    }
    #expect(try await send(http).body == [7])
    #expect(http.requests.map { $0.headers["DPoP"] } == ["proof -", "proof n1"])
    #expect(http.requests.allSatisfy { $0.body == [1] && $0.method == .post && $0.url == request.url })
  }

  /// Fails if a resource server can keep the token busy with nonces.
  @Test("A second challenge is the response") func secondChallenge() async throws {
    let http = RecordingHTTPTransport { _ throws(HTTPTransportError) in Self.challenge }
    #expect(try await send(http) == Self.challenge)
    #expect(http.requests.count == 2)
  }

  @Test(
    "A response that is no challenge, or has no usable nonce, is not retried",
    arguments: [
      (200, "n", "use_dpop_nonce"), (401, "n", "invalid_token"), (401, "", "use_dpop_nonce"),
      (401, "a b", "use_dpop_nonce"), (401, "a\"", "use_dpop_nonce"), (401, "\u{E9}", "use_dpop_nonce"),
      (401, String(repeating: "n", count: 257), "use_dpop_nonce"), (403, "n", "use_dpop_nonce"),
    ])
  func noChallenge(status: Int, nonce: String, error: String) async throws {
    let response = HTTPResponse(
      status: status, headers: ["WWW-Authenticate": "DPoP error=\"\(error)\"", "DPoP-Nonce": nonce])
    let http = RecordingHTTPTransport { _ throws(HTTPTransportError) in response }
    #expect(try await send(http) == response)
    #expect(http.requests.count == 1)
  }

  @Test(
    "A failure names the resource server, not the token server",
    arguments: [
      (.unreachable("r"), .unavailable, 9001),
      (.noNetwork("r"), .unavailable, 9000), (.timedOut(after: .seconds(1)), .unavailable, 9001),
      (.untrusted("r"), .refused, nil), (.tooLarge(limit: 5), .badData, nil), (.malformed("r"), .badData, nil),
      (.redirected(to: "https://evil.example"), .refused, nil), (.unsendable("r"), .usage, nil),
    ] as [(HTTPTransportError, CommandError.Code, Int?)])
  func failures(error: HTTPTransportError, code: CommandError.Code, number: Int?) async throws {
    let http = RecordingHTTPTransport { _ throws(HTTPTransportError) in throw error }
    await #expect {
      _ = try await send(http)
    } throws: {
      let error = $0 as? CommandError
      return error?.code == code && error?.number == number && !"\($0)".contains("token server")
    }
  }

  @Test("A response is sent in parts", arguments: [0, 1, 49_152, 49_153, 1 << 20]) func parts(size: Int) {
    let body = (0..<size).map { UInt8(truncatingIfNeeded: $0) }
    let lines = ResourceReply.lines(
      of: HTTPResponse(status: 201, headers: ["Content-Type": "text/plain\u{1B}"], body: body))
    #expect(lines.first == .head(status: 201, contentType: "text/plain", size: size))
    let parts = lines.dropFirst().map { if case .part(let bytes) = $0 { bytes } else { [UInt8]() } }
    #expect(Array(parts.joined()) == body && parts.allSatisfy { (1...ResourceReply.longestPart).contains($0.count) })
  }
}
