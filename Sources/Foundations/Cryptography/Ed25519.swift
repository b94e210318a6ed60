// SPDX-License-Identifier: Apache-2.0
import COpenSSL
package import Secrets

/// Ed25519 signatures (RFC 8032). Every 32 bytes are a valid seed. A PIN-wrapped seed needs this property: unwrapping
/// it with a wrong PIN must not be detectable by an invalid key.
package enum Ed25519 {
  package final class PrivateKey: Sendable {
    private let key: EVPKey

    /// - Parameter seed: 32 bytes.
    package init(seed: SecretBytes) throws(CryptographyError) {
      let key = seed.withExposedSecret { seed in
        EVP_PKEY_new_raw_private_key(
          EVP_PKEY_ED25519, nil, seed.bindMemory(to: UInt8.self).baseAddress, seed.count)
      }
      guard let key else {
        ERR_clear_error()
        throw .malformed("Ed25519 seed of \(seed.count) bytes")
      }
      self.key = EVPKey(owning: key)
    }

    /// 32 bytes.
    package var publicKey: PublicKey {
      get throws(CryptographyError) {
        var bytes = [UInt8](repeating: 0, count: 32)
        var count = bytes.count
        guard EVP_PKEY_get_raw_public_key(key.pointer, &bytes, &count) == 1 else {
          throw libraryFailure("Ed25519 public key")
        }
        return try PublicKey(bytes: bytes)
      }
    }

    /// 64 bytes.
    package func signature(for message: [UInt8]) throws(CryptographyError) -> [UInt8] {
      try key.signature(for: message, digest: nil, size: 64)
    }
  }

  package struct PublicKey: Sendable, Equatable {
    /// 32 bytes.
    package let bytes: [UInt8]

    package init(bytes: [UInt8]) throws(CryptographyError) {
      guard bytes.count == 32 else { throw .malformed("Ed25519 public key of \(bytes.count) bytes") }
      self.bytes = bytes
    }

    package func isValidSignature(_ signature: [UInt8], for message: [UInt8]) -> Bool {
      guard let key = EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, nil, bytes, bytes.count) else {
        ERR_clear_error()
        return false
      }
      return EVPKey(owning: key).isValidSignature(signature, for: message, digest: nil)
    }
  }
}
