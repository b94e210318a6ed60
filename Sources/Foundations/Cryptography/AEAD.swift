// SPDX-License-Identifier: Apache-2.0
import COpenSSL
package import Secrets

/// AES-256-GCM (NIST SP 800-38D). The random 96-bit nonce precedes the ciphertext, the 128-bit tag follows it. One key
/// must not encrypt more than 2^32 messages; the vault's keys encrypt less than that in a token's lifetime: at
/// most some hundred messages an hour for each account.
package enum AES256GCM {
  private static let nonceBytes = 12
  private static let tagBytes = 16

  /// - Parameter key: 32 bytes.
  /// - Parameter context: the associated data: authenticated together with the secret, but not part of the result.
  /// - Returns: nonce ‖ ciphertext ‖ tag.
  package static func seal(_ secret: SecretBytes, key: SecretBytes, context: [UInt8]) throws(CryptographyError)
    -> [UInt8]
  {
    let nonce = Random.bytes(nonceBytes)
    var box = nonce + [UInt8](repeating: 0, count: secret.count + tagBytes)
    let cipher = EVP_CIPHER_CTX_new()
    defer { EVP_CIPHER_CTX_free(cipher) }
    var length: Int32 = 0
    let sealed = box.withUnsafeMutableBytes { box in
      let output = box.bindMemory(to: UInt8.self).baseAddress! + nonceBytes
      return key.withExposedSecret { key in
        secret.withExposedSecret { secret in
          key.count == 32
            && EVP_EncryptInit_ex(
              cipher, EVP_aes_256_gcm(), nil, key.bindMemory(to: UInt8.self).baseAddress, nonce) == 1
            && EVP_EncryptUpdate(cipher, nil, &length, context, Int32(context.count)) == 1
            && EVP_EncryptUpdate(
              cipher, output, &length, secret.bindMemory(to: UInt8.self).baseAddress, Int32(secret.count)) == 1
            && EVP_EncryptFinal_ex(cipher, output + secret.count, &length) == 1
            && EVP_CIPHER_CTX_ctrl(
              cipher, EVP_CTRL_AEAD_GET_TAG, Int32(tagBytes), output + secret.count) == 1
        }
      }
    }
    guard sealed else { throw libraryFailure("AES-256-GCM seal") }
    return box
  }

  /// Decrypts. Throws `.notAuthentic` unless the tag matches the ciphertext, the key and the associated data.
  package static func open(_ box: [UInt8], key: SecretBytes, context: [UInt8]) throws(CryptographyError) -> SecretBytes
  {
    let count = box.count - nonceBytes - tagBytes
    guard count >= 0, key.count == 32 else { throw .malformed("ciphertext of \(box.count) bytes") }
    return try SecretBytes(count: count) { (target: UnsafeMutableRawBufferPointer) throws(CryptographyError) in
      let cipher = EVP_CIPHER_CTX_new()
      defer { EVP_CIPHER_CTX_free(cipher) }
      var length: Int32 = 0
      var tag = Array(box.suffix(tagBytes))
      let output = target.bindMemory(to: UInt8.self).baseAddress
      let authentic = box.withUnsafeBufferPointer { box in
        key.withExposedSecret { key in
          EVP_DecryptInit_ex(
            cipher, EVP_aes_256_gcm(), nil, key.bindMemory(to: UInt8.self).baseAddress, box.baseAddress) == 1
            && EVP_DecryptUpdate(cipher, nil, &length, context, Int32(context.count)) == 1
            && EVP_DecryptUpdate(cipher, output, &length, box.baseAddress! + nonceBytes, Int32(count)) == 1
            && EVP_CIPHER_CTX_ctrl(cipher, EVP_CTRL_AEAD_SET_TAG, Int32(tagBytes), &tag) == 1
            && EVP_DecryptFinal_ex(cipher, output.map { $0 + count }, &length) == 1
        }
      }
      guard authentic else {
        OPENSSL_cleanse(target.baseAddress, target.count)
        ERR_clear_error()
        throw .notAuthentic
      }
    }
  }
}
