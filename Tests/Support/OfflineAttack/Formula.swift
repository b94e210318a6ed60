// SPDX-License-Identifier: Apache-2.0
import COfflineAttack
import COpenSSL

/// An independent implementation of the key derivation of docs/pin.md, over OpenSSL and in ordinary memory, as an
/// attacker would write it: fast, and without code of the attacked program.
enum Formula {
  static func key(
    pin: [UInt8], salt: [UInt8], logCost: UInt8, blockSize: UInt8, parallelization: UInt8, binding: [UInt8],
    purpose: String
  ) -> [UInt8] {
    var stretched = [UInt8](repeating: 0, count: 32)
    attack_scrypt(
      pin, pin.count, salt, salt.count, UInt32(logCost), UInt32(blockSize), UInt32(parallelization), &stretched)
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

  static func sha256(_ bytes: [UInt8]) -> [UInt8] {
    var digest = [UInt8](repeating: 0, count: 32)
    attack_sha256(bytes, bytes.count, &digest)
    return digest
  }

  /// HKDF-Expand of RFC 5869, one block.
  static func hkdf(_ key: [UInt8], salt: [UInt8] = [], info: String) -> [UInt8] {
    let zeros = [UInt8](repeating: 0, count: 32)
    return hmac(key: hmac(key: salt.isEmpty ? zeros : salt, key), Array(info.utf8) + [1])
  }

  /// HMAC-SHA-256 (RFC 2104).
  private static func hmac(key: [UInt8], _ message: [UInt8]) -> [UInt8] {
    var tag = [UInt8](repeating: 0, count: 32)
    attack_hmac(key, key.count, message, message.count, &tag)
    return tag
  }

  private static func lengthAndBytes(_ bytes: [UInt8]) -> [UInt8] {
    withUnsafeBytes(of: UInt32(bytes.count).bigEndian) { Array($0) } + bytes
  }
}
