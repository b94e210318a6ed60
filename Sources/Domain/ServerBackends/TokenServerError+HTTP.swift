// SPDX-License-Identifier: Apache-2.0
import DisplayText
package import HTTP
package import MobileAuth

extension TokenServerError {
  /// The error for a request without a response.
  package init(_ error: HTTPTransportError) {
    let why = error.description.sanitized(atMost: 500)
    self =
      switch error {
      case .untrusted: .untrusted(why)
      case .noNetwork: .noNetwork(why)
      default: .unreachable(why)
      }
  }

  /// The error for a response that is not the token server's, such as a proxy's error page, or that reports an internal
  /// error.
  package init(unexplained response: HTTPResponse) {
    self =
      response.status == 429
      ? .rateLimited(retryAfter: response.retryAfter)
      : .unreachable("status \(response.status) without a known error message")
  }
}

extension HTTPResponse {
  /// The seconds of the header `Retry-After`, at most a day; nil without one, and if it is not a number of seconds.
  package var retryAfter: Duration? {
    headers["Retry-After"].flatMap { Int64($0) }.flatMap { $0 >= 0 ? .seconds(min($0, 86_400)) : nil }
  }
}
