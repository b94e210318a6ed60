// SPDX-License-Identifier: Apache-2.0
import COpenSSL
package import Secrets

/// SHA-256 of OpenSSL, looked up once: what `EVP_sha256()` returns is looked up at each use.
nonisolated(unsafe) let sha256Digest = EVP_MD_fetch(nil, "SHA256", nil) ?? EVP_sha256()

package enum SHA256 {
  /// 32 bytes.
  package static func hash(_ bytes: [UInt8]) -> [UInt8] {
    var digest = [UInt8](repeating: 0, count: 32)
    precondition(EVP_Digest(bytes, bytes.count, &digest, nil, sha256Digest, nil) == 1)
    return digest
  }
}

/// HMAC-SHA-256 (RFC 2104).
package enum HMACSHA256 {
  /// 32 bytes.
  package static func authenticate(_ message: [UInt8], key: SecretBytes) -> [UInt8] {
    var tag = [UInt8](repeating: 0, count: 32)
    key.withExposedSecret { key in
      precondition(
        HMAC(
          sha256Digest, key.baseAddress, Int32(key.count), message, message.count, &tag, nil) != nil)
    }
    return tag
  }

  /// Whether the tag is valid. The time depends only on the lengths.
  package static func isValid(_ tag: [UInt8], for message: [UInt8], key: SecretBytes) -> Bool {
    constantTimeEqual(tag, authenticate(message, key: key))
  }
}

/// Compares values such as tokens and tags that an attacker could guess byte by byte. The values are in ordinary
/// memory.
package func constantTimeEqual(_ one: [UInt8], _ other: [UInt8]) -> Bool {
  one.count == other.count && CRYPTO_memcmp(one, other, one.count) == 0
}

/// HKDF with SHA-256 (RFC 5869).
package enum HKDF {
  /// - Parameter info: the purpose of the derived key. Different purposes need different values.
  package static func derive(_ key: SecretBytes, salt: [UInt8] = [], info: String, count: Int = 32) -> SecretBytes {
    SecretBytes(count: count) { (target: UnsafeMutableRawBufferPointer) in
      let context = EVP_PKEY_CTX_new_id(EVP_PKEY_HKDF, nil)
      defer { EVP_PKEY_CTX_free(context) }
      var written = count
      let info = Array(info.utf8)
      let derived = key.withExposedSecret { key in
        EVP_PKEY_derive_init(context) == 1
          && EVP_PKEY_CTX_set_hkdf_md(context, sha256Digest) == 1
          && EVP_PKEY_CTX_set1_hkdf_salt(context, salt, Int32(salt.count)) == 1
          && EVP_PKEY_CTX_set1_hkdf_key(
            context, key.bindMemory(to: UInt8.self).baseAddress, Int32(key.count)) == 1
          && EVP_PKEY_CTX_add1_hkdf_info(context, info, Int32(info.count)) == 1
          && EVP_PKEY_derive(context, target.bindMemory(to: UInt8.self).baseAddress, &written) == 1
      }
      precondition(derived && written == count, "HKDF-SHA256 failed")
    }
  }
}
