// SPDX-License-Identifier: Apache-2.0
import HTTP
import MobileAuth
import ReferenceProtocol
import ServerBackends

/// Access tokens: the server's OAuth endpoints, and the use of a user access token elsewhere.
extension DeviceClient {
  /// `POST /oauth/token`.
  func requestToken(
    grant: String, form: [(String, String)] = [], about profile: String? = nil
  ) async throws(TokenServerError) -> AccessTokenResponse {
    let response = try await oauth(metadata.tokenEndpoint, [("grant_type", grant)] + form)
    guard response.status == 200 else {
      throw checked(TokenServerError(oauth: response), response, about: profile, isSecondAsk: isReconnecting)
    }
    return try Self.decode(AccessTokenResponse.self, response)
  }

  /// Sends a form to an OAuth endpoint, with client authentication and proof of possession.
  private func oauth(_ url: String, _ form: [(String, String)]) async throws(TokenServerError) -> HTTPResponse {
    guard let clientID else { throw .notAuthenticated("the device is not registered yet") }
    var last: HTTPResponse?
    areCredentialsRefused = false
    var refusals = 0
    for _ in 0..<Self.tries {
      let assertion: String
      do { assertion = try ClientAssertion.make(clientID: clientID, audience: issuer, now: now, key: key) } catch {
        throw .refused("signing failed: \(error)")
      }
      let members =
        [
          ("client_id", clientID), ("client_assertion_type", Grant.clientAssertionType),
          ("client_assertion", assertion),
        ] + form
      var request = HTTPRequest(
        .post, url,
        headers: [
          "Content-Type": "application/x-www-form-urlencoded", "DPoP": try proof(.post, url, nil, nonce: nonce),
        ], body: Array(formEncoded(members).utf8))
      request.idleLimit = idleLimit
      let response: HTTPResponse
      do { response = try await http.send(request) } catch { throw TokenServerError(error) }
      let formerNonce = nonce
      hear(response)
      let error = try? JSON.decode(OAuthError.self, from: response.body)
      let isNonceStale = error?.error == OAuthError.useDPoPNonce && nonce != formerNonce
      // An assertion counts once, and something on the way can have sent it twice: a second assertion decides.
      let isRefusal = error?.error == OAuthError.invalidClient && error?.errorCode == nil
      refusals += isRefusal ? 1 : 0
      areCredentialsRefused = refusals > 1
      guard isNonceStale || isRefusal && refusals == 1 else { return response }
      last = response
    }
    guard let last else { throw .notAuthenticated("no answer") }
    return last
  }

  /// `POST /oauth/revoke` (RFC 7009).
  func revoke(_ token: String) async throws(TokenServerError) {
    let response = try await oauth(metadata.revocationEndpoint, [("token", token)])
    guard response.status == 200 else {
      throw checked(TokenServerError(oauth: response), response, isSecondAsk: false)
    }
  }

  /// Adds a user access token and its proof to a request to another server.
  /// - Parameter nonce: the other server's.
  func authorized(
    _ request: HTTPRequest, with token: String, nonce: String?
  ) async throws(TokenServerError) -> HTTPRequest {
    try await hearTime()
    var request = request
    request.headers["Authorization"] = "DPoP \(token)"
    request.headers["DPoP"] = try proof(request.method, request.url, token, nonce: nonce)
    return request
  }
}
