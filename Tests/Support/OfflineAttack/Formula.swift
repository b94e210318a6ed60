// SPDX-License-Identifier: Apache-2.0
import COpenSSL

/// An independent implementation of the key derivation of docs/pin.md, over OpenSSL and in ordinary memory, as an
/// attacker would write it: fast, and without code of the attacked program.
enum Formula {
  static func key(
    pin: [UInt8], salt: [UInt8], logCost: UInt8, blockSize: UInt8, parallelization: UInt8, binding: [UInt8],
    purpose: String
  ) -> [UInt8] {
    var stretched = [UInt8](repeating: 0, count: 32)
    let done = pin.withUnsafeBytes { pin in
      EVP_PBE_scrypt(
        pin.bindMemory(to: CChar.self).baseAddress, pin.count, salt, salt.count, 1 << UInt64(logCost),
        UInt64(blockSize), UInt64(parallelization), 1 << 30, &stretched, 32)
    }
    precondition(done == 1, "scrypt")
    return hkdf(lengthAndBytes(stretched) + lengthAndBytes(binding), info: purpose)
  }

  static func token(in blob: WrappedBlob, pin: [UInt8], binding: [UInt8]) -> [UInt8] {
    var token = key(
      pin: pin, salt: blob.salt, logCost: blob.logCost, blockSize: blob.blockSize,
      parallelization: blob.parallelization, binding: binding, purpose: blob.purpose)
    for index in token.indices { token[index] ^= blob.wrapped[index] }
    return token
  }

  /// The public knowledge key that a token would result in.
  static func knowledge(of token: [UInt8], identity: String) -> [UInt8] {
    let seed = hkdf(token, salt: Array(identity.utf8), info: "approval-token/knowledge/v1")
    let key = EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, nil, seed, seed.count)
    defer { EVP_PKEY_free(key) }
    var publicKey = [UInt8](repeating: 0, count: 32)
    var count = 32
    precondition(EVP_PKEY_get_raw_public_key(key, &publicKey, &count) == 1, "Ed25519")
    return publicKey
  }

  /// SHA-256, fetched once: in OpenSSL, a fetch takes longer than a digest.
  private nonisolated(unsafe) static let algorithm = EVP_MD_fetch(nil, "SHA256", nil)

  static func sha256(_ bytes: [UInt8]) -> [UInt8] {
    var digest = [UInt8](repeating: 0, count: 32)
    precondition(EVP_Digest(bytes, bytes.count, &digest, nil, algorithm, nil) == 1, "SHA-256")
    return digest
  }

  /// HKDF-Expand of RFC 5869, one block.
  static func hkdf(_ key: [UInt8], salt: [UInt8] = [], info: String) -> [UInt8] {
    let zeros = [UInt8](repeating: 0, count: 32)
    return hmac(key: hmac(key: salt.isEmpty ? zeros : salt, key), Array(info.utf8) + [1])
  }

  /// HMAC-SHA-256 (RFC 2104).
  private static func hmac(key: [UInt8], _ message: [UInt8]) -> [UInt8] {
    let key = key.count > 64 ? sha256(key) : key
    let padded = key + [UInt8](repeating: 0, count: 64 - key.count)
    return sha256(padded.map { $0 ^ 0x5C } + sha256(padded.map { $0 ^ 0x36 } + message))
  }

  private static func lengthAndBytes(_ bytes: [UInt8]) -> [UInt8] {
    withUnsafeBytes(of: UInt32(bytes.count).bigEndian) { Array($0) } + bytes
  }
}
