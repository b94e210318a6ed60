// SPDX-License-Identifier: Apache-2.0
import Hummingbird
import TokenServerCore

extension StoredReply {
  /// - Parameter error: the media type of an error response.
  func response(error: String = "application/problem+json") -> Response {
    guard status >= 300 else { return .json(bytes: body, status: .init(code: status)) }
    return .json(bytes: body, status: .init(code: status), type: error)
  }
}
