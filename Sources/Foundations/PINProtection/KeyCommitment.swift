// SPDX-License-Identifier: Apache-2.0
import Cryptography
package import Secrets

/// A commitment to a key: identifies the key without revealing it. A token that verifies PINs itself compares it.
/// AES-GCM's tag is not a commitment: a ciphertext can be constructed that decrypts with many keys (Len, Grubbs,
/// Ristenpart, "Partitioning Oracle Attacks", USENIX Security 2021).
package struct KeyCommitment: Sendable {
  /// 32 bytes.
  let bytes: SecretBytes

  package init(to key: SecretBytes) { bytes = HKDF.derive(key, info: "commit") }

  init(bytes: SecretBytes) { self.bytes = bytes }

  /// Whether the key matches, in constant time. The only place where a token learns whether a PIN was correct.
  package func isValid(by key: SecretBytes) -> Bool {
    SecretBytes.constantTimeEqual(bytes, KeyCommitment(to: key).bytes)
  }
}
