import Cryptography
public import Secrets

/// Tells one key from all others without telling the key: what a token that judges PINs itself compares. AES-GCM's own
/// tag is no such thing: one box can be made that opens under many keys (Len, Grubbs, Ristenpart, "Partitioning Oracle
/// Attacks", USENIX Security 2021).
public struct KeyCommitment: Sendable {
  /// 32 bytes.
  let bytes: SecretBytes

  public init(to key: SecretBytes) { bytes = HKDF.derive(key, info: "commit") }

  init(bytes: SecretBytes) { self.bytes = bytes }

  /// In a time that does not depend on either: the one place where a token learns whether a PIN was right.
  public func isKept(by key: SecretBytes) -> Bool {
    SecretBytes.constantTimeEqual(bytes, KeyCommitment(to: key).bytes)
  }
}
