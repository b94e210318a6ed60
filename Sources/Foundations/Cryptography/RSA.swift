// SPDX-License-Identifier: Apache-2.0
import COpenSSL
public import Secrets

/// An RSA key pair for RSASSA-PKCS1-v1_5 signatures with SHA-256 (RFC 8017 §8.2). The exponent is 65537.
public final class RSAPrivateKey: Sendable {
  /// OpenSSL's key. Immutable after `init`; signing only reads it.
  private nonisolated(unsafe) let key: OpaquePointer
  public let publicKey: RSAPublicKey

  /// Generates a key. Takes seconds on a small board, and the time varies widely, because primes are found by trial.
  /// - Parameter bits: 2048 to 4096.
  public convenience init(bits: Int) throws(CryptographyError) {
    guard RSAPublicKey.sizes.contains(bits) else { throw .malformed("RSA key of \(bits) bits") }
    let context = EVP_PKEY_CTX_new_from_name(nil, "RSA", nil)
    defer { EVP_PKEY_CTX_free(context) }
    var key: OpaquePointer?
    guard EVP_PKEY_keygen_init(context) == 1, EVP_PKEY_CTX_set_rsa_keygen_bits(context, Int32(bits)) == 1,
      EVP_PKEY_generate(context, &key) == 1, let key
    else { throw libraryFailure("RSA key generation") }
    try self.init(owning: key)
  }

  /// - Parameter secret: a result of `exportedSecret()`, or the same key as PKCS#8.
  public convenience init(secret: SecretBytes) throws(CryptographyError) {
    let key = secret.withExposedSecret { bytes in
      var position = bytes.bindMemory(to: UInt8.self).baseAddress
      return d2i_AutoPrivateKey(nil, &position, bytes.count)
    }
    guard let key else {
      ERR_clear_error()
      throw .malformed("RSA private key")
    }
    try self.init(owning: key)
  }

  private init(owning key: OpaquePointer) throws(CryptographyError) {
    self.key = key
    do { publicKey = try RSAPublicKey(of: key) } catch {
      EVP_PKEY_free(key)
      throw error
    }
  }

  deinit { EVP_PKEY_free(key) }

  /// The key as DER (RSAPrivateKey, RFC 8017 appendix A.1.2).
  public func exportedSecret() throws(CryptographyError) -> SecretBytes {
    let count = i2d_PrivateKey(key, nil)
    guard count > 0 else { throw libraryFailure("RSA export") }
    return SecretBytes(count: Int(count)) { (target: UnsafeMutableRawBufferPointer) in
      var position = target.bindMemory(to: UInt8.self).baseAddress
      i2d_PrivateKey(key, &position)
    }
  }

  /// The signature, with the length of the modulus. Deterministic: equal messages give equal signatures.
  public func signature(for message: [UInt8]) throws(CryptographyError) -> [UInt8] {
    let context = EVP_MD_CTX_new()
    defer { EVP_MD_CTX_free(context) }
    var signature = [UInt8](repeating: 0, count: Int(EVP_PKEY_get_size(key)))
    var count = signature.count
    // PKCS#1 v1.5 is OpenSSL's default padding for RSA signatures.
    guard EVP_DigestSignInit(context, nil, EVP_sha256(), nil, key) == 1,
      EVP_DigestSign(context, &signature, &count, message, message.count) == 1, count == signature.count
    else { throw libraryFailure("RSA signature") }
    return signature
  }
}

/// Verifies RSASSA-PKCS1-v1_5 signatures with SHA-256.
public struct RSAPublicKey: Sendable, Equatable {
  /// The accepted sizes in bits: neither weak nor too expensive for a small board.
  public static let sizes = 2048...4096

  /// DER RSAPublicKey (RFC 8017 appendix A.1.1): only modulus and exponent.
  public let pkcs1: [UInt8]
  /// DER SubjectPublicKeyInfo (RFC 5280 §4.1.2.7).
  public let subjectPublicKeyInfo: [UInt8]
  private let handle: Handle

  private final class Handle: Sendable {
    nonisolated(unsafe) let key: OpaquePointer
    init(owning key: OpaquePointer) { self.key = key }
    deinit { EVP_PKEY_free(key) }
  }

  /// - Parameter der: DER RSAPublicKey without trailing bytes.
  public init(pkcs1 der: [UInt8]) throws(CryptographyError) {
    let (key, rest) = der.withUnsafeBufferPointer { bytes in
      var position = bytes.baseAddress
      let key = d2i_PublicKey(EVP_PKEY_RSA, nil, &position, bytes.count)
      return (key, position.map { bytes.baseAddress! + bytes.count - $0 })
    }
    try self.init(parsed: key, rest)
  }

  /// - Parameter der: DER SubjectPublicKeyInfo of an RSA key without trailing bytes.
  public init(subjectPublicKeyInfo der: [UInt8]) throws(CryptographyError) {
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
    // Only the public half is stored, so that nothing secret is reachable from this value.
    var info: UnsafeMutablePointer<UInt8>?
    let count = i2d_PUBKEY(key, &info)
    guard count > 0, let info else { throw libraryFailure("RSA public key") }
    defer { CRYPTO_free(info, #file, #line) }
    var position: UnsafePointer<UInt8>? = UnsafePointer(info)
    guard let copy = d2i_PUBKEY(nil, &position, Int(count)) else { throw libraryFailure("RSA public key") }
    handle = Handle(owning: copy)
    subjectPublicKeyInfo = Array(UnsafeBufferPointer(start: info, count: Int(count)))
    var modulusAndExponent: UnsafeMutablePointer<UInt8>?
    let length = i2d_PublicKey(copy, &modulusAndExponent)
    guard length > 0, let modulusAndExponent else { throw libraryFailure("RSA public key") }
    defer { CRYPTO_free(modulusAndExponent, #file, #line) }
    pkcs1 = Array(UnsafeBufferPointer(start: modulusAndExponent, count: Int(length)))
  }

  /// The size of the modulus in bits.
  public var bits: Int { Int(EVP_PKEY_get_bits(handle.key)) }

  public func isValidSignature(_ signature: [UInt8], for message: [UInt8]) -> Bool {
    let context = EVP_MD_CTX_new()
    defer {
      EVP_MD_CTX_free(context)
      ERR_clear_error()
    }
    return EVP_DigestVerifyInit(context, nil, EVP_sha256(), nil, handle.key) == 1
      && EVP_DigestVerify(context, signature, signature.count, message, message.count) == 1
  }

  public static func == (one: RSAPublicKey, other: RSAPublicKey) -> Bool { one.pkcs1 == other.pkcs1 }
}
