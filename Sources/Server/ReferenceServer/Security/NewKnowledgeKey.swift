// SPDX-License-Identifier: Apache-2.0
import Cryptography
import OpenPGP
import ReferenceProtocol
import Secrets

/// A newly created refresh token of a profile. It is sent only in encrypted form; the server keeps the public half of
/// its knowledge key and a keyed hash.
struct NewKnowledgeKey: Sendable {
  let clientID: String
  let profileID: String
  let publicKey: Ed25519.PublicKey
  let refreshTokenHash: [UInt8]
  private let refreshToken: SecretBytes

  init(clientID: String, profileID: String, hasher: KeyedHasher) throws {
    refreshToken = Random.secret(32)
    self.clientID = clientID
    self.profileID = profileID
    publicKey = try KnowledgeKey(refreshToken: refreshToken, clientID: clientID, profileID: profileID).publicKey
    refreshTokenHash = hasher.hash(refreshToken, for: .refreshToken)
  }

  /// The encrypted refresh token.
  /// - Parameter recipient: a certificate created for this exchange only, so that recorded traffic cannot be decrypted
  ///   with a stolen device.
  /// - Returns: Base64.
  func sealed(to recipient: OpenPGPCertificate, by key: OpenPGPKey) throws -> String {
    var plaintext = refreshToken.withExposedSecret { Array($0) }
    defer { cleanse(&plaintext) }
    return try key.seal(plaintext, to: recipient).base64
  }

  /// The certificate that a device created for the exchange; nil if it is invalid.
  static func recipient(_ base64: String) -> OpenPGPCertificate? {
    bytes(base64: base64).flatMap { try? OpenPGPCertificate(parsing: $0) }
  }
}
