// SPDX-License-Identifier: Apache-2.0
package import Cryptography
package import Secrets

/// An account's keys encrypted with a PIN-derived key (AES-256-GCM), for servers that do not verify PINs. The PIN is
/// never compared; without the correct PIN the keys are unavailable.
///
/// An attacker with all data of the device can try all PINs. Only the cost of the key derivation limits that
/// (docs/pin.md).
package struct SealedKeys: Sendable {
  package let derivation: KeyDerivation
  private let commitment: KeyCommitment
  private let sealedBytes: [UInt8]

  private static let version: UInt8 = 1
  private static let purpose = "approval-token/pin-sealed-keys/v1"

  /// - Parameter binding: `Vault.pinBinding`.
  package static func seal(
    _ keys: SecretBytes, under pin: PIN, binding: SecretBytes, parameters: Scrypt.Parameters
  ) throws(CryptographyError) -> SealedKeys {
    let derivation = KeyDerivation(parameters: parameters)
    let key = try derivation.key(from: pin, binding: binding, purpose: purpose)
    let box = try AES256GCM.seal(keys, key: HKDF.derive(key, info: "seal"), context: context(derivation))
    return SealedKeys(derivation: derivation, commitment: KeyCommitment(to: key), sealedBytes: box)
  }

  /// - Returns: the keys; nil if the PIN is wrong.
  /// - Throws: never because of the PIN; `.notAuthentic` if the PIN is correct and the ciphertext is damaged.
  package func open(with pin: PIN, binding: SecretBytes) throws(CryptographyError) -> SecretBytes? {
    let key = try derivation.key(from: pin, binding: binding, purpose: Self.purpose)
    guard commitment.isValid(by: key) else { return nil }
    return try AES256GCM.open(sealedBytes, key: HKDF.derive(key, info: "seal"), context: Self.context(derivation))
  }

  private static func context(_ derivation: KeyDerivation) -> [UInt8] { [version] + derivation.encoded }
}

/// The encoding: version, parameters, salt, commitment, ciphertext. The vault encrypts it again, with a key that does
/// not depend on the PIN.
extension SealedKeys {
  package var encoded: SecretBytes {
    SecretBytes(copying: Self.context(derivation) + commitment.bytes.withExposedSecret { Array($0) } + sealedBytes)
  }

  /// - Throws: `.malformed` if the bytes are not an encoding.
  package init(encoded: SecretBytes) throws(CryptographyError) {
    let headerBytes = 1 + KeyDerivation.encodedBytes
    self = try encoded.withExposedSecret { (bytes: UnsafeRawBufferPointer) throws(CryptographyError) in
      guard bytes.count >= headerBytes + 32 else { throw .malformed("sealed keys of \(bytes.count) bytes") }
      guard bytes[0] == Self.version else { throw .malformed("sealed keys of version \(bytes[0])") }
      return SealedKeys(
        derivation: try KeyDerivation(encoded: bytes[1..<headerBytes]),
        commitment: KeyCommitment(bytes: SecretBytes(copying: bytes[headerBytes..<headerBytes + 32])),
        sealedBytes: Array(bytes[(headerBytes + 32)...]))
    }
  }
}
