// SPDX-License-Identifier: Apache-2.0
package import Cryptography
package import Secrets

/// The keys derived from the pepper, one per purpose, and keyed hashes with them. After a rotation, secrets from before
/// are verified with the former pepper until it is retired.
package struct KeyedHasher: Sendable {
  /// The purpose of a stored verifier; the same secret has a different hash for each.
  package enum Purpose: String, Sendable, CaseIterable {
    case portalSecret = "portal-secret"
    case activationCode = "activation-code"
    case fleetToken = "fleet-token"
    case accessToken = "access-token"
    case refreshToken = "refresh-token"
    /// The proof of a PIN attempt. Without the key, a stored hash could be used to test PIN guesses with a stolen
    /// device.
    case knowledgeAssertion = "knowledge-assertion"
    /// The key of the nonces for DPoP proofs, if several servers accept them; it is not stored.
    case proofNonces = "proof-nonces"
    /// Names of MQTT topics; they are not stored. Tokens keep them: their key outlives rotations (`topicKey`).
    case mailbox
  }

  private let hashKeys: [Purpose: SecretBytes]
  /// Nil without a former pepper.
  private let formerHashKeys: [Purpose: SecretBytes]?
  private let sealingKey: SecretBytes

  /// - Parameters:
  ///   - former: the pepper before the last rotation.
  ///   - topicKey: that of the first pepper; nil before the first rotation.
  package init(_ pepper: SecretBytes, former: SecretBytes? = nil, topicKey: SecretBytes? = nil) {
    hashKeys = Self.hashKeys(from: pepper).merging(topicKey.map { [.mailbox: $0] } ?? [:]) { $1 }
    formerHashKeys = former.map(Self.hashKeys)
    sealingKey = HKDF.derive(pepper, info: "token-server/sealing/v1")
  }

  private static func hashKeys(from pepper: SecretBytes) -> [Purpose: SecretBytes] {
    Dictionary(
      uniqueKeysWithValues: Purpose.allCases.map {
        ($0, HKDF.derive(pepper, info: "token-server/\($0.rawValue)/v1"))
      })
  }

  /// The key of the names of MQTT topics.
  package var topicKey: SecretBytes { hashKeys[.mailbox]! }

  /// The verifiers of a secret that may have been stored before the last rotation: with the current pepper, then with
  /// the former one, if there is one.
  package func hashes(_ secret: String, for purpose: Purpose) -> [[UInt8]] {
    [hashKeys, formerHashKeys].compactMap { keys in
      keys.map { HMACSHA256.authenticate(Array(secret.utf8), key: $0[purpose]!) }
    }
  }

  /// The stored verifier of a secret that the server generated at random. Not for secrets that users choose: they
  /// require a slow hash.
  package func hash(_ secret: String, for purpose: Purpose) -> [UInt8] {
    HMACSHA256.authenticate(Array(secret.utf8), key: hashKeys[purpose]!)
  }

  package func hash(_ secret: SecretBytes, for purpose: Purpose) -> [UInt8] {
    var bytes = secret.withExposedSecret { Array($0) }
    defer { cleanse(&bytes) }
    return HMACSHA256.authenticate(bytes, key: hashKeys[purpose]!)
  }

  /// Encrypts an OpenPGP key of the server for the database.
  package func seal(_ secret: SecretBytes, of fingerprint: String) throws(CryptographyError) -> [UInt8] {
    try AES256GCM.seal(secret, key: sealingKey, context: Array(fingerprint.utf8))
  }

  /// Decrypts an OpenPGP key of the server.
  /// - Throws: `.notAuthentic` if it was encrypted with another pepper.
  package func open(_ sealedSecret: [UInt8], of fingerprint: String) throws(CryptographyError) -> SecretBytes {
    try AES256GCM.open(sealedSecret, key: sealingKey, context: Array(fingerprint.utf8))
  }
}
