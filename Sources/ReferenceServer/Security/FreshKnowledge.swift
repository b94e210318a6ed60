import Cryptography
import OpenPGP
import ReferenceProtocol
import Secrets

/// A refresh token made just now: one wrap of one secret, for one profile. It leaves only sealed; what stays here are
/// the public half of its knowledge key and a keyed hash.
struct FreshKnowledge: Sendable {
  let clientID: String
  let profileID: String
  let publicKey: Ed25519.PublicKey
  let refreshTokenHash: [UInt8]
  private let refreshToken: SecretBytes

  init(clientID: String, profileID: String, peppered: Peppered) throws {
    refreshToken = Random.secret(32)
    self.clientID = clientID
    self.profileID = profileID
    publicKey = try KnowledgeKey(refreshToken: refreshToken, clientID: clientID, profileID: profileID).publicKey
    refreshTokenHash = peppered.hash(refreshToken, for: .refreshToken)
  }

  /// - Parameter recipient: made for this exchange alone: traffic that was recorded must be worth nothing once a card
  ///   is stolen.
  /// - Returns: Base64.
  func sealed(to recipient: OpenPGPCertificate, by key: OpenPGPKey) throws -> String {
    var plaintext = refreshToken.withExposedSecret { Array($0) }
    defer { cleanse(&plaintext) }
    return try key.seal(plaintext, to: recipient).base64
  }

  /// The certificate a device made for the exchange; nil if it is none.
  static func recipient(_ base64: String) -> OpenPGPCertificate? {
    bytes(base64: base64).flatMap { try? OpenPGPCertificate(parsing: $0) }
  }
}
