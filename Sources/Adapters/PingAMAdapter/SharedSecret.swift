// SPDX-License-Identifier: Apache-2.0
import Cryptography
import JSONValues
import Secrets

/// The key that one mechanism shares with AM for the lifetime of the account. Both sides sign their messages with it,
/// in the same way.
struct SharedSecret: Sendable {
  /// At least 32 bytes.
  let bytes: SecretBytes

  private static let header = Array(#"{"typ":"JWT","alg":"HS256"}"#.utf8)

  /// The answer to a challenge: the HMAC in Base64 with padding, because AM compares the text.
  func answer(to challenge: [UInt8]) -> String { HMACSHA256.authenticate(challenge, key: bytes).base64 }

  /// A compact JWT (RFC 7519).
  func token(_ claims: [String: JSONValue]) -> String {
    JWS.sign(header: Self.header, payload: Array(JSONValue.object(claims).canonical.utf8), secret: bytes)
  }

  /// The request body for AM's push endpoint: `{"messageId", "jwt"}`.
  func body(messageID: String, _ claims: [String: JSONValue]) -> [UInt8] {
    Array(JSONValue.object(["messageId": .text(messageID), "jwt": .text(token(claims))]).canonical.utf8)
  }
}
