import Courier
import JSONValues
import MobileAuth

/// Speaks HTTP to AM's push endpoints. There is no session: every body is signed.
struct PingAMClient: Sendable {
  private static func fault(_ error: CourierError) -> TokenServerFault {
    if case .untrusted = error { .untrusted("\(error)") } else { .unreachable("\(error)") }
  }

  /// What became of one request.
  enum Reply: Sendable, Equatable {
    /// 200, and an answer that is AM's: it has stored what we sent.
    case stored
    /// 400: an id that is unknown or over, a wrong signature, a wrong answer, a refused device. AM does not tell which.
    case refused
  }

  static let userAgent = "approval-token/0.1.0"
  /// AM's endpoints are versioned; without these headers a browser's rules would apply.
  private static let version = "resource=1.0, protocol=1.0"

  let courier: any Courier

  /// Returns if something answers there that may be AM: it takes no GET, and says so in one of several ways.
  func reach(_ url: String) async throws(TokenServerFault) {
    let request = HTTPRequest(
      .get, url, headers: ["Accept-API-Version": Self.version, "User-Agent": Self.userAgent],
      maximumBodyBytes: 65_536)
    let response: HTTPResponse
    do { response = try await courier.send(request) } catch { throw Self.fault(error) }
    guard response.status < 500 || response.status == 501 else { throw TokenServerFault(unexpected: response) }
  }

  /// - Parameter cookie: `name=value`, verbatim.
  func post(_ body: [UInt8], to url: String, cookie: String?) async throws(TokenServerFault) -> Reply {
    var request = HTTPRequest(
      .post, url,
      headers: [
        "Content-Type": "application/json", "Accept": "application/json", "Accept-API-Version": Self.version,
        "User-Agent": Self.userAgent,
      ],
      body: body, deadline: .seconds(30), maximumBodyBytes: 65_536)
    request.headers["Cookie"] = cookie
    let response: HTTPResponse
    do { response = try await courier.send(request) } catch { throw Self.fault(error) }
    switch response.status {
    case 200:
      guard case .object? = JSONValue(parsing: response.body) else {
        throw .unreachable("status 200 without the answer that AM gives")
      }
      return .stored
    case 400: return .refused
    default: throw TokenServerFault(unexpected: response)
    }
  }
}

extension TokenServerFault {
  /// Any answer but 200 and 400. What comes from AM itself will not change by being asked again, what comes from
  /// something before it may.
  fileprivate init(unexpected response: HTTPResponse) {
    switch response.status {
    case 401, 403: self = .refused("status \(response.status): something before AM wants a login")
    case 404: self = .configurationInvalid("AM's push service is not set up in this realm (404)")
    case 501: self = .configurationInvalid("AM's push endpoint does not know what we ask for (501)")
    case 429:
      let seconds = response.headers["Retry-After"].flatMap { Int64($0) }.flatMap { $0 >= 0 ? min($0, 86_400) : nil }
      self = .rateLimited(retryAfter: seconds.map { .seconds($0) })
    default: self = .unreachable("status \(response.status) without an explanation we understand")
    }
  }
}
