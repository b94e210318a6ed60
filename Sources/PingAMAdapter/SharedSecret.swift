import Cryptography
import JSONValues
import Secrets

/// What one mechanism and AM have in common, for as long as the account lives. All they tell each other is signed with
/// it, by both in the same way.
struct SharedSecret: Sendable {
  /// 32 or more.
  let bytes: SecretBytes

  private static let header = Array(#"{"typ":"JWT","alg":"HS256"}"#.utf8)

  /// AM compares the text: Base64 with padding, or it is a wrong answer.
  func answer(to challenge: [UInt8]) -> String { HMACSHA256.authenticate(challenge, key: bytes).base64 }

  /// A compact JWT (RFC 7519).
  func token(_ claims: [String: JSONValue]) -> String {
    JWS.sign(header: Self.header, payload: Array(JSONValue.object(claims).canonical.utf8), secret: bytes)
  }

  /// `{"messageId", "jwt"}`: all that AM's endpoint takes.
  func body(messageID: String, _ claims: [String: JSONValue]) -> [UInt8] {
    Array(JSONValue.object(["messageId": .text(messageID), "jwt": .text(token(claims))]).canonical.utf8)
  }
}
