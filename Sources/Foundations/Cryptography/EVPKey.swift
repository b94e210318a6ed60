// SPDX-License-Identifier: Apache-2.0
import COpenSSL
import Secrets

/// An OpenSSL key, private or public. Immutable; OpenSSL zeroes a private key when it is freed.
final class EVPKey: Sendable {
  nonisolated(unsafe) let pointer: OpaquePointer

  init(owning pointer: OpaquePointer) { self.pointer = pointer }

  deinit { EVP_PKEY_free(pointer) }

  /// Generates a key.
  /// - Parameters:
  ///   - name: OpenSSL's name of the algorithm.
  ///   - configure: sets the size or the curve; returns OpenSSL's result, which is 1 on success.
  convenience init(generating name: String, _ configure: (OpaquePointer?) -> Int32) throws(CryptographyError) {
    let context = EVP_PKEY_CTX_new_from_name(nil, name, nil)
    defer { EVP_PKEY_CTX_free(context) }
    var key: OpaquePointer?
    guard EVP_PKEY_keygen_init(context) == 1, configure(context) == 1, EVP_PKEY_generate(context, &key) == 1, let key
    else { throw libraryFailure("\(name) key generation") }
    self.init(owning: key)
  }

  /// - Parameter secret: a private key as DER; the algorithm is detected.
  convenience init(secret: SecretBytes, of name: String) throws(CryptographyError) {
    let key = secret.withExposedSecret { bytes in
      var position = bytes.bindMemory(to: UInt8.self).baseAddress
      return d2i_AutoPrivateKey(nil, &position, bytes.count)
    }
    guard let key else {
      ERR_clear_error()
      throw .malformed("\(name) private key")
    }
    self.init(owning: key)
  }

  /// The private key as DER, in the algorithm's own format.
  func exportedSecret() throws(CryptographyError) -> SecretBytes {
    let count = i2d_PrivateKey(pointer, nil)
    guard count > 0 else { throw libraryFailure("private key export") }
    var written: Int32 = 0
    let secret = SecretBytes(count: Int(count)) { (target: UnsafeMutableRawBufferPointer) in
      var position = target.bindMemory(to: UInt8.self).baseAddress
      written = i2d_PrivateKey(pointer, &position)
    }
    // Encoded again: the second call can fail, too, for lack of memory.
    guard written == count else { throw libraryFailure("private key export") }
    return secret
  }

  /// - Parameters:
  ///   - digest: nil for an algorithm that contains one.
  ///   - size: the maximum size of the signature in bytes.
  func signature(for message: [UInt8], digest: OpaquePointer?, size: Int) throws(CryptographyError) -> [UInt8] {
    let context = EVP_MD_CTX_new()
    defer { EVP_MD_CTX_free(context) }
    var signature = [UInt8](repeating: 0, count: size)
    var count = size
    guard EVP_DigestSignInit(context, nil, digest, nil, pointer) == 1,
      EVP_DigestSign(context, &signature, &count, message, message.count) == 1
    else { throw libraryFailure("signature") }
    return Array(signature[..<count])
  }

  /// The signature over bytes that are not hashed.
  func signature(ofDigest digest: [UInt8], size: Int) throws(CryptographyError) -> [UInt8] {
    let context = EVP_PKEY_CTX_new(pointer, nil)
    defer { EVP_PKEY_CTX_free(context) }
    var signature = [UInt8](repeating: 0, count: size)
    var count = size
    guard EVP_PKEY_sign_init(context) == 1,
      EVP_PKEY_sign(context, &signature, &count, digest, digest.count) == 1
    else { throw libraryFailure("signature") }
    return Array(signature[..<count])
  }

  func isValidSignature(_ signature: [UInt8], for message: [UInt8], digest: OpaquePointer?) -> Bool {
    let context = EVP_MD_CTX_new()
    defer {
      EVP_MD_CTX_free(context)
      ERR_clear_error()
    }
    return EVP_DigestVerifyInit(context, nil, digest, nil, pointer) == 1
      && EVP_DigestVerify(context, signature, signature.count, message, message.count) == 1
  }

  /// As above, over bytes that are a digest already: costs less, because OpenSSL need not look up the digest.
  func isValidSignature(_ signature: [UInt8], ofDigest digest: [UInt8]) -> Bool {
    let context = EVP_PKEY_CTX_new(pointer, nil)
    defer {
      EVP_PKEY_CTX_free(context)
      ERR_clear_error()
    }
    return EVP_PKEY_verify_init(context) == 1
      && EVP_PKEY_verify(context, signature, signature.count, digest, digest.count) == 1
  }
}
