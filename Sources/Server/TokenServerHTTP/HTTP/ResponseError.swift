// SPDX-License-Identifier: Apache-2.0
import HTTPTypes
import Hummingbird
import ReferenceProtocol
import TokenServerCore

/// An error response of the OAuth endpoints and the portal APIs: `error`, `error_description`, `error_code`.
struct ResponseError: Error {
  let status: HTTPResponse.Status
  var body: OAuthError
  var headers: HTTPFields = [:]
  /// The removed enrollment, for errors 9002 and 9003.
  var gone: Gone?

  init(
    _ status: HTTPResponse.Status, _ error: String, _ description: String? = nil, code: Int? = nil,
    headers: HTTPFields = [:], gone: Gone? = nil
  ) {
    self.status = status
    body = OAuthError(error, description, code: code)
    self.headers = headers
    self.gone = gone
  }

  var response: Response { .json(body, status: status, headers: headers) }

  static let malformedPath = ResponseError(.badRequest, "invalid_request", "The path is not percent-encoded UTF-8.")
  static let notFound = ResponseError(.notFound, "not_found", "There is nothing at this address.")
  static let tooLarge = ResponseError(.contentTooLarge, "invalid_request", "The body is larger than 256 KiB.")
  static let brokenBody = ResponseError(
    .badRequest, "invalid_request", "The body did not arrive whole.", headers: [.connection: "close"])
  /// The disk is full or failing, or another process locks the database.
  static let cannotStore = ResponseError(
    .serviceUnavailable, "temporarily_unavailable", "The server cannot store anything now.", code: 1002,
    headers: [.retryAfter: "30"])
  static func invalidRequest(_ why: String, code: Int? = nil) -> ResponseError {
    ResponseError(.badRequest, "invalid_request", why, code: code)
  }
}
