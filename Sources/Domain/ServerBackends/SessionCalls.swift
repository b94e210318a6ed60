// SPDX-License-Identifier: Apache-2.0
package import HTTP
package import MobileAuth

/// A client whose sessions have access tokens that other servers accept.
package protocol SessionCalls: UserSessions {
  /// Adds the session's access token and a proof of possession (RFC 9449 §4) to a request to another server. The proof
  /// is valid for this method and address only.
  /// - Parameter nonce: that the other server has sent; nil if it has sent none.
  func authorize(
    _ request: HTTPRequest, in session: UserSession, nonce: String?
  ) async throws(TokenServerError) -> HTTPRequest
}
