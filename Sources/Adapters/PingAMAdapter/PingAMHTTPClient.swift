// SPDX-License-Identifier: Apache-2.0
import HTTP
import JSONValues
import MobileAuth
import ServerBackends

/// An HTTP client for AM's push endpoints. There is no session: every body is signed.
struct PingAMHTTPClient: Sendable {
  /// The result of one request.
  enum Reply: Sendable, Equatable {
    /// Status 200 with a JSON object: AM has processed and stored the request.
    case stored
    /// Status 400 with a JSON object: an unknown or completed message ID, a wrong signature, a wrong answer or a
    /// rejected device. AM does not distinguish these cases.
    case refused
  }

  static let userAgent = "approval-token/0.1.0"
  /// AM's endpoints are versioned. Without this header, AM applies its protection against cross-site requests by
  /// browsers.
  private static let version = "resource=1.0, protocol=1.0"

  let http: any HTTPTransport

  /// Checks that a server answers at the URL. AM rejects GET there, with different statuses: accepts every status below
  /// 500, and 501.
  func reach(_ url: String) async throws(TokenServerError) {
    let request = HTTPRequest(
      .get, url, headers: ["Accept-API-Version": Self.version, "User-Agent": Self.userAgent],
      maximumBodyBytes: 65_536)
    let response: HTTPResponse
    do { response = try await http.send(request) } catch { throw TokenServerError(error) }
    guard response.status < 500 || response.status == 501 else { throw TokenServerError(unexpected: response) }
  }

  /// - Parameter cookie: `name=value`, verbatim.
  func post(_ body: [UInt8], to url: String, cookie: String?) async throws(TokenServerError) -> Reply {
    var request = HTTPRequest(
      .post, url,
      headers: [
        "Content-Type": "application/json", "Accept": "application/json", "Accept-API-Version": Self.version,
        "User-Agent": Self.userAgent,
      ],
      body: body, deadline: .seconds(30), maximumBodyBytes: 65_536)
    request.headers["Cookie"] = cookie
    let response: HTTPResponse
    do { response = try await http.send(request) } catch { throw TokenServerError(error) }
    guard [200, 400].contains(response.status) else { throw TokenServerError(unexpected: response) }
    // A page of a proxy says nothing about what AM has done.
    guard let body = JSONValue(parsing: response.body), case .object = body else {
      throw .unreachable("status \(response.status), but the body is not a JSON object as AM sends it")
    }
    if response.status == 400 { return .refused }
    guard body["code"] == nil else {
      throw .unreachable("status 200, but the body is an error, which AM sends with status 400")
    }
    return .stored
  }
}

extension TokenServerError {
  static let unsupported = TokenServerError.configurationInvalid(
    "AM's push endpoint does not support this request (501)")

  /// Creates the fault for a status other than 200 and 400. A status that AM itself sends is permanent; a status of a
  /// gateway in front of AM may be temporary.
  fileprivate init(unexpected response: HTTPResponse) {
    switch response.status {
    case 401, 403: self = .refused("status \(response.status): a gateway in front of AM requires a login")
    case 404: self = .configurationInvalid("AM's push service is not set up in this realm (404)")
    case 501: self = .unsupported
    default: self.init(unexplained: response)
    }
  }
}
