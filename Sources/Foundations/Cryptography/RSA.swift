// SPDX-License-Identifier: Apache-2.0
import COpenSSL
package import Secrets
import Threads

/// An RSA key pair for RSASSA-PKCS1-v1_5 signatures with SHA-256 (RFC 8017 §8.2). The exponent is 65537.
package final class RSAPrivateKey: Sendable {
  private let key: EVPKey
  package let publicKey: RSAPublicKey

  /// Generates a key. Takes seconds on a small board, and the time varies widely, because primes are found by trial.
  /// - Parameter bits: 2048 to 4096.
  package convenience init(bits: Int) throws(CryptographyError) {
    guard RSAPublicKey.sizes.contains(bits) else { throw .malformed("RSA key of \(bits) bits") }
    threadWillBlock()
    try self.init(EVPKey(generating: "RSA") { EVP_PKEY_CTX_set_rsa_keygen_bits($0, Int32(bits)) })
  }

  /// - Parameter secret: a result of `exportedSecret()`, or the same key as PKCS#8.
  package convenience init(secret: SecretBytes) throws(CryptographyError) {
    try self.init(EVPKey(secret: secret, of: "RSA"))
  }

  private init(_ key: EVPKey) throws(CryptographyError) {
    publicKey = try RSAPublicKey(of: key.pointer)
    self.key = key
  }

  /// The key as DER (RSAPrivateKey, RFC 8017 appendix A.1.2).
  package func exportedSecret() throws(CryptographyError) -> SecretBytes { try key.exportedSecret() }

  /// The signature, with the length of the modulus. Deterministic: equal messages give equal signatures.
  package func signature(for message: [UInt8]) throws(CryptographyError) -> [UInt8] {
    // PKCS#1 v1.5 is OpenSSL's default padding for RSA signatures.
    try key.signature(for: message, digest: sha256Digest, size: Int(EVP_PKEY_get_size(key.pointer)))
  }
}

/// Verifies RSASSA-PKCS1-v1_5 signatures with SHA-256.
package struct RSAPublicKey: Sendable, Equatable {
  /// The accepted sizes in bits: neither weak nor too expensive for a small board.
  package static let sizes = 2048...4096
  /// The accepted size of the exponent in bits. A verification has at least one multiplication for each bit, and
  /// OpenSSL accepts exponents of up to 3072 bits.
  static let exponentSizes = 2...32

  /// DER RSAPublicKey (RFC 8017 appendix A.1.1): only modulus and exponent.
  package let pkcs1: [UInt8]
  /// DER SubjectPublicKeyInfo (RFC 5280 §4.1.2.7).
  package let subjectPublicKeyInfo: [UInt8]
  private let key: EVPKey

  /// - Parameter der: DER RSAPublicKey without trailing bytes.
  package init(pkcs1 der: [UInt8]) throws(CryptographyError) {
    let (key, rest) = der.withUnsafeBufferPointer { bytes in
      var position = bytes.baseAddress
      let key = d2i_PublicKey(EVP_PKEY_RSA, nil, &position, bytes.count)
      return (key, position.map { bytes.baseAddress! + bytes.count - $0 })
    }
    try self.init(parsed: key, rest)
  }

  /// - Parameter der: DER SubjectPublicKeyInfo of an RSA key without trailing bytes.
  package init(subjectPublicKeyInfo der: [UInt8]) throws(CryptographyError) {
    let (key, rest) = der.withUnsafeBufferPointer { bytes in
      var position = bytes.baseAddress
      let key = d2i_PUBKEY(nil, &position, bytes.count)
      return (key, position.map { bytes.baseAddress! + bytes.count - $0 })
    }
    try self.init(parsed: key, rest)
  }

  private init(parsed key: OpaquePointer?, _ rest: Int?) throws(CryptographyError) {
    defer { EVP_PKEY_free(key) }
    ERR_clear_error()
    guard let key, rest == 0 else { throw .malformed("RSA public key") }
    try self.init(of: key)
  }

  /// Copies the public half of the key. The caller remains the owner of `key`.
  fileprivate init(of key: OpaquePointer) throws(CryptographyError) {
    let bits = Int(EVP_PKEY_get_bits(key))
    guard EVP_PKEY_is_a(key, "RSA") == 1 else { throw .malformed("not an RSA key") }
    guard Self.sizes.contains(bits) else { throw .malformed("RSA key of \(bits) bits") }
    var exponent: OpaquePointer?
    defer { BN_free(exponent) }
    guard EVP_PKEY_get_bn_param(key, OSSL_PKEY_PARAM_RSA_E, &exponent) == 1, let exponent else {
      throw libraryFailure("RSA public key")
    }
    let exponentBits = Int(BN_num_bits(exponent))
    guard Self.exponentSizes.contains(exponentBits) else { throw .malformed("RSA exponent of \(exponentBits) bits") }
    // Only the public half is stored, so that nothing secret is reachable from this value.
    var info: UnsafeMutablePointer<UInt8>?
    let count = i2d_PUBKEY(key, &info)
    guard count > 0, let info else { throw libraryFailure("RSA public key") }
    defer { CRYPTO_free(info, #file, #line) }
    var position: UnsafePointer<UInt8>? = UnsafePointer(info)
    guard let copy = d2i_PUBKEY(nil, &position, Int(count)) else { throw libraryFailure("RSA public key") }
    self.key = EVPKey(owning: copy)
    subjectPublicKeyInfo = Array(UnsafeBufferPointer(start: info, count: Int(count)))
    var modulusAndExponent: UnsafeMutablePointer<UInt8>?
    let length = i2d_PublicKey(copy, &modulusAndExponent)
    guard length > 0, let modulusAndExponent else { throw libraryFailure("RSA public key") }
    defer { CRYPTO_free(modulusAndExponent, #file, #line) }
    pkcs1 = Array(UnsafeBufferPointer(start: modulusAndExponent, count: Int(length)))
  }

  /// The size of the modulus in bits.
  package var bits: Int { Int(EVP_PKEY_get_bits(key.pointer)) }

  package func isValidSignature(_ signature: [UInt8], for message: [UInt8]) -> Bool {
    key.isValidSignature(signature, for: message, digest: sha256Digest)
  }

  package static func == (one: RSAPublicKey, other: RSAPublicKey) -> Bool { one.pkcs1 == other.pkcs1 }
}
