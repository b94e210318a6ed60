// SPDX-License-Identifier: Apache-2.0
package import Cryptography
import Secrets
import Threads

/// Derives a key from a PIN on one device. scrypt makes each guess expensive in memory and time; the device binding
/// makes guesses without the device impossible.
package struct KeyDerivation: Sendable, Equatable {
  package let parameters: Scrypt.Parameters
  /// 16 bytes, random for every key.
  package let salt: [UInt8]

  static let saltBytes = 16

  /// Creates a derivation with a new random salt.
  package init(parameters: Scrypt.Parameters) {
    self.init(parameters: parameters, salt: Random.bytes(Self.saltBytes))
  }

  init(parameters: Scrypt.Parameters, salt: [UInt8]) {
    self.parameters = parameters
    self.salt = salt
  }

  /// `HKDF-SHA256(scrypt(PIN, salt) and binding, purpose)`: 32 bytes.
  /// - Parameter binding: `Vault.pinBinding`, at least 32 bytes. It is part of the input key and not HKDF's salt,
  ///   because OpenSSL does not zero the salt when it frees it (providers/implementations/kdfs/hkdf.c).
  /// - Parameter purpose: the purpose of the key. Different purposes need different values.
  /// - Throws: `.malformed` for parameters that scrypt rejects, or for a shorter binding.
  func key(from pin: PIN, binding: SecretBytes, purpose: String) throws(CryptographyError) -> SecretBytes {
    HKDF.derive(try stretch(pin, binding: binding), info: purpose)
  }

  /// The input key of HKDF in `key`.
  func stretch(_ pin: PIN, binding: SecretBytes) throws(CryptographyError) -> SecretBytes {
    guard binding.count >= 32 else { throw .malformed("device binding of \(binding.count) bytes") }
    threadWillBlock()
    return SecretBytes.joining([try Scrypt.derive(pin.digits, salt: salt, parameters: parameters), binding])
  }
}

/// The encoding in records: the binary logarithm of N, r, p, then the salt. It does not depend on a PIN.
extension KeyDerivation {
  static let encodedBytes = 3 + saltBytes

  var encoded: [UInt8] {
    [
      UInt8(parameters.cost.trailingZeroBitCount), UInt8(clamping: parameters.blockSize),
      UInt8(clamping: parameters.parallelization),
    ] + salt
  }

  /// The parameters are validated when a key is derived, before memory is allocated.
  init(encoded: some Collection<UInt8>) throws(CryptographyError) {
    let bytes = Array(encoded)
    guard bytes.count == Self.encodedBytes, bytes[0] < 64 else { throw .malformed("key derivation parameters") }
    let parameters = Scrypt.Parameters(
      cost: 1 << UInt64(bytes[0]), blockSize: UInt64(bytes[1]), parallelization: UInt64(bytes[2]))
    self.init(parameters: parameters, salt: Array(bytes[3...]))
  }
}
