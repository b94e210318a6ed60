// SPDX-License-Identifier: Apache-2.0
import COpenSSL
package import Cryptography

extension P256PublicKey {
  /// - Parameter signature: DER ECDSA-Sig-Value.
  package func isValidDERSignature(_ signature: [UInt8], overDigest digest: [UInt8]) -> Bool {
    let key = subjectPublicKeyInfo.withUnsafeBufferPointer { info in
      var position = info.baseAddress
      return d2i_PUBKEY(nil, &position, info.count)
    }
    let context = EVP_PKEY_CTX_new(key, nil)
    defer {
      EVP_PKEY_CTX_free(context)
      EVP_PKEY_free(key)
    }
    return EVP_PKEY_verify_init(context) == 1
      && EVP_PKEY_verify(context, signature, signature.count, digest, digest.count) == 1
  }
}
