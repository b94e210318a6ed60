// SPDX-License-Identifier: Apache-2.0
/// The texts of a request that its server has signed, for display. They contain only what an adapter has verified.
package struct VerifiedTexts: Sendable, Equatable {
  /// How the server proved that the texts are its own.
  package enum Signature: String, Sendable {
    /// An OpenPGP signature by the server's key for this enrollment, in a message encrypted to this account.
    case openPGP = "openpgp"
    /// An RSA signature by the server's key for this enrollment.
    case rsa
    /// An HMAC with the secret that this token shares with the server.
    case hmac
  }

  /// The maximum length of a message in Unicode scalars. A longer one is shortened and ends with "…".
  package static let longestMessage = 65_536

  package let signature: Signature
  /// The name of the request type.
  package let type: String?
  /// May contain line feeds, but no other control characters.
  package let message: String?
  /// The server's signed copy of the text in the pending list; nil if it signs none.
  package let pushMessage: String?
  /// SHA-256, in lower-case hexadecimal digits, of the message as signed (UTF-8, not shortened), or of the push message
  /// if there is no message; nil if the adapter does not compute it.
  package let digest: String?

  /// - Parameters: sanitized texts; an empty text counts as none.
  package init(
    signedWith signature: Signature, type: String?, message: String?, pushMessage: String? = nil, digest: String? = nil
  ) {
    self.signature = signature
    self.type = type.flatMap { $0.isEmpty ? nil : $0 }
    self.message = message.flatMap { $0.isEmpty ? nil : $0 }
    self.pushMessage = pushMessage.flatMap { $0.isEmpty ? nil : $0 }
    self.digest = digest
  }
}
