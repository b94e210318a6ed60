// SPDX-License-Identifier: Apache-2.0

/// What the server has signed of a request, and this token has verified. The texts have no control characters except
/// line feeds.
package struct VerifiedSummary: Codable, Equatable, Sendable {
  /// How the texts are signed: `openpgp`, `rsa` or `hmac`.
  package var signature: String
  package var type: String?
  package var message: String?
  /// The signed copy of the text in the pending list.
  package var pushMessage: String?
  /// SHA-256, in hexadecimal digits, of the message as signed, or of the push message if there is none.
  package var sha256: String?

  package init(signature: String, type: String?, message: String?, pushMessage: String?, sha256: String?) {
    self.signature = signature
    self.type = type
    self.message = message
    self.pushMessage = pushMessage
    self.sha256 = sha256
  }

  enum CodingKeys: String, CodingKey {
    case signature, type, message, sha256
    case pushMessage = "push_message"
  }
}
