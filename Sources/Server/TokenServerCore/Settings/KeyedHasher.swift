// SPDX-License-Identifier: Apache-2.0
import Cryptography
package import Secrets

/// The keys derived from the pepper, one per purpose, and keyed hashes with them.
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
    /// Names of MQTT topics; they are not stored.
    case mailbox
  }

  private let hashKeys: [Purpose: SecretBytes]
  /// Encrypts the server's OpenPGP keys in the database.
  package let sealingKey: SecretBytes

  package init(_ pepper: SecretBytes) {
    hashKeys = Dictionary(
      uniqueKeysWithValues: Purpose.allCases.map {
        ($0, HKDF.derive(pepper, info: "token-server/\($0.rawValue)/v1"))
      })
    sealingKey = HKDF.derive(pepper, info: "token-server/sealing/v1")
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
}
