// SPDX-License-Identifier: Apache-2.0
import Cryptography

/// What a custom authenticator can sign for one use: both sides compute the same 32 bytes from values that they have,
/// so that a signature counts for nothing else.
package struct AuthenticatorChallenge: Sendable, Equatable {
  /// What the authenticator is used for.
  package enum Purpose: String, Codable, Sendable { case registration, login, push, deregistration }

  package var purpose: Purpose
  package var issuer: String
  package var clientID: String
  package var profileID: String
  /// The identifier.
  package var authenticator: String
  /// The ID of the registration, the `jti` of the login's assertion, or the nonce of the request (Base64url).
  package var nonce: String
  /// The rest is empty, except for `push`.
  package var transactionID = ""
  package var decision = ""
  /// Base64url of SHA-256 over the exact decrypted request.
  package var requestSHA256 = ""
  /// Base64url of SHA-256 over the portal's `secure_message` in UTF-8; of no bytes without one.
  package var messageSHA256 = ""

  package init(
    for purpose: Purpose, issuer: String, clientID: String, profileID: String, authenticator: String, nonce: String
  ) {
    self.purpose = purpose
    self.issuer = issuer
    self.clientID = clientID
    self.profileID = profileID
    self.authenticator = authenticator
    self.nonce = nonce
  }

  /// SHA-256 of `hashedBytes`, 32 bytes.
  package var digest: [UInt8] { SHA256.hash(hashedBytes) }

  /// The domain and the values in UTF-8, one line each. No value contains a line feed: they are URLs, UUIDs,
  /// identifiers and Base64url.
  package var hashedBytes: [UInt8] {
    let lines = [
      "approval-token/authenticator/v1", purpose.rawValue, issuer, clientID, profileID, authenticator, nonce,
      transactionID, decision, requestSHA256, messageSHA256,
    ]
    return Array(lines.joined(separator: "\n").utf8)
  }

  /// The host name in the URL of an issuer: the relying party for security keys.
  package static func host(ofIssuer issuer: String) -> String {
    let authority = issuer.drop { $0 != ":" }.dropFirst(3).prefix { $0 != "/" }
    let address = authority.first == "[" ? authority.prefix { $0 != "]" } + "]" : authority.prefix { $0 != ":" }
    return String(address)
  }

  /// The digest of a portal's `secure_message`, as in `messageSHA256`.
  package static func digest(ofMessage message: String?) -> String {
    SHA256.hash(Array((message ?? "").utf8)).base64URL
  }
}
