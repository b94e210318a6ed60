import Cryptography
import Secrets

/// The keys derived from the pepper, one per purpose, and what is done with them.
struct Peppered: Sendable {
  /// What a stored verifier is for; the same secret has a different hash for each.
  enum Purpose: String, Sendable, CaseIterable {
    case portalSecret = "portal-secret"
    case activationCode = "activation-code"
    case fleetToken = "fleet-token"
    case accessToken = "access-token"
    case refreshToken = "refresh-token"
    /// What a PIN was proved with; without the key a stored hash of it could be tried against a stolen card.
    case knowledgeAssertion = "knowledge-assertion"
    /// Names of mailboxes, which are not stored.
    case mailbox
  }

  private let hashKeys: [Purpose: SecretBytes]
  /// Seals the server's OpenPGP keys in the database.
  let sealingKey: SecretBytes

  init(_ pepper: SecretBytes) {
    hashKeys = Dictionary(
      uniqueKeysWithValues: Purpose.allCases.map {
        ($0, HKDF.derive(pepper, info: "token-server/\($0.rawValue)/v1"))
      })
    sealingKey = HKDF.derive(pepper, info: "token-server/sealing/v1")
  }

  /// What is stored of a secret that the server itself made at random. Not for secrets people choose: those would
  /// need a slow hash.
  func hash(_ secret: String, for purpose: Purpose) -> [UInt8] {
    HMACSHA256.authenticate(Array(secret.utf8), key: hashKeys[purpose]!)
  }

  func hash(_ secret: SecretBytes, for purpose: Purpose) -> [UInt8] {
    var bytes = secret.withExposedSecret { Array($0) }
    defer { cleanse(&bytes) }
    return HMACSHA256.authenticate(bytes, key: hashKeys[purpose]!)
  }
}
