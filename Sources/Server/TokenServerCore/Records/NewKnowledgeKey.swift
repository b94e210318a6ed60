// SPDX-License-Identifier: Apache-2.0
package import Cryptography
package import OpenPGP
import ReferenceProtocol
import Secrets

/// A newly created refresh token of a profile. It is sent only in encrypted form; the server keeps the public half of
/// its knowledge key and a keyed hash.
package struct NewKnowledgeKey: Sendable {
  package let clientID: ClientID
  package let profileID: ProfileID
  package let publicKey: Ed25519.PublicKey
  package let refreshTokenHash: [UInt8]
  private let refreshToken: SecretBytes

  /// - Parameter authenticator: the identifier of the authenticator whose token it is; nil for the PIN.
  package init(
    clientID: ClientID, profileID: ProfileID, authenticator: String? = nil, hasher: KeyedHasher
  ) throws {
    refreshToken = Random.secret(32)
    self.clientID = clientID
    self.profileID = profileID
    publicKey = try KnowledgeKey(
      refreshToken: refreshToken, clientID: clientID.text, profileID: profileID.text, authenticator: authenticator
    ).publicKey
    refreshTokenHash = hasher.hash(refreshToken, for: .refreshToken)
  }

  /// The encrypted refresh token.
  /// - Parameter recipient: a certificate created for this exchange only, so that recorded traffic cannot be decrypted
  ///   with a stolen device.
  /// - Returns: Base64.
  package func sealed(to recipient: OpenPGPCertificate, by key: OpenPGPKey) throws -> String {
    var plaintext = refreshToken.withExposedSecret { Array($0) }
    defer { cleanse(&plaintext) }
    return try key.seal(plaintext, to: recipient).base64
  }

  /// The certificate that a device created for the exchange; nil if it is invalid.
  package static func recipient(_ base64: String) -> OpenPGPCertificate? {
    bytes(base64: base64).flatMap { try? OpenPGPCertificate(parsing: $0) }
  }
}
