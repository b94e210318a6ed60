import HTTPTypes
import Hummingbird
import ReferenceProtocol

/// An error reply of the OAuth endpoints and the portal APIs: `error`, `error_description`, `error_code`.
struct Refusal: Error {
  let status: HTTPResponse.Status
  let body: OAuthError
  var headers: HTTPFields = [:]

  init(
    _ status: HTTPResponse.Status, _ error: String, _ description: String? = nil, code: Int? = nil,
    headers: HTTPFields = [:]
  ) {
    self.status = status
    body = OAuthError(error, description, code: code)
    self.headers = headers
  }

  var response: Response { .json(body, status: status, headers: headers) }

  static let malformedPath = Refusal(.badRequest, "invalid_request", "The path is not percent-encoded UTF-8.")
  static let notFound = Refusal(.notFound, "not_found", "There is nothing at this address.")
  static let tooLarge = Refusal(.contentTooLarge, "invalid_request", "The body is larger than 256 KiB.")
  static func invalidRequest(_ why: String) -> Refusal { Refusal(.badRequest, "invalid_request", why) }
}
