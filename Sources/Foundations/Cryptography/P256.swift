// SPDX-License-Identifier: Apache-2.0
import COpenSSL
package import Secrets

/// A P-256 key pair for ES256 signatures (RFC 7518 §3.4).
package final class P256PrivateKey: Sendable {
  private let key: EVPKey
  package let publicKey: P256PublicKey

  package convenience init() throws(CryptographyError) {
    try self.init(EVPKey(generating: "EC") { EVP_PKEY_CTX_set_group_name($0, "P-256") })
  }

  /// - Parameter secret: a result of `exportedSecret()`.
  package convenience init(secret: SecretBytes) throws(CryptographyError) {
    if let key = P256Secret.key(secret) {
      try self.init(key)
    } else {
      try self.init(EVPKey(secret: secret, of: "P-256"))
    }
  }

  private init(_ key: EVPKey) throws(CryptographyError) {
    publicKey = try P256PublicKey(of: key)
    self.key = key
  }

  /// The key as DER (RFC 5915).
  package func exportedSecret() throws(CryptographyError) -> SecretBytes { try key.exportedSecret() }

  /// 64 bytes, r ‖ s.
  package func signature(for message: [UInt8]) throws(CryptographyError) -> [UInt8] {
    let der = try derSignature(for: message)
    let parsed = der.withUnsafeBufferPointer { buffer in
      var position = buffer.baseAddress
      return d2i_ECDSA_SIG(nil, &position, buffer.count)
    }
    defer { ECDSA_SIG_free(parsed) }
    var raw = [UInt8](repeating: 0, count: 64)
    let padded = raw.withUnsafeMutableBufferPointer { raw in
      BN_bn2binpad(ECDSA_SIG_get0_r(parsed), raw.baseAddress, 32) == 32
        && BN_bn2binpad(ECDSA_SIG_get0_s(parsed), raw.baseAddress! + 32, 32) == 32
    }
    guard padded else { throw libraryFailure("ES256 signature") }
    return raw
  }

  /// The signature as DER ECDSA-Sig-Value (RFC 3279 §2.2.3).
  package func derSignature(for message: [UInt8]) throws(CryptographyError) -> [UInt8] {
    try key.signature(for: message, digest: sha256Digest, size: 80)
  }

  /// As above, over bytes that are a digest already.
  package func derSignature(ofDigest digest: [UInt8]) throws(CryptographyError) -> [UInt8] {
    try key.signature(ofDigest: digest, size: 80)
  }
}

/// A point on P-256 that verifies ES256 signatures.
package struct P256PublicKey: Sendable, Equatable {
  /// Affine coordinates, 32 bytes each, big endian.
  package let x: [UInt8]
  package let y: [UInt8]
  private let key: EVPKey

  /// Throws `.malformed` for coordinates that are not a point on the curve.
  package init(x: [UInt8], y: [UInt8]) throws(CryptographyError) {
    guard x.count == 32, y.count == 32 else { throw .malformed("P-256 coordinates of \(x.count) and \(y.count) bytes") }
    let context = EVP_PKEY_CTX_new_from_name(nil, "EC", nil)
    defer { EVP_PKEY_CTX_free(context) }
    let point = [4] + x + y
    var key: OpaquePointer?
    guard EVP_PKEY_paramgen_init(context) == 1, EVP_PKEY_CTX_set_group_name(context, "P-256") == 1,
      EVP_PKEY_paramgen(context, &key) == 1, let key
    else { throw libraryFailure("P-256 parameters") }
    guard EVP_PKEY_set1_encoded_public_key(key, point, point.count) == 1 else {
      EVP_PKEY_free(key)
      ERR_clear_error()
      throw .malformed("P-256 public key: not a point of the curve")
    }
    self.x = x
    self.y = y
    self.key = EVPKey(owning: key)
  }

  fileprivate init(of key: EVPKey) throws(CryptographyError) {
    var point = [UInt8](repeating: 0, count: 65)
    var count = 0
    guard EVP_PKEY_get_octet_string_param(key.pointer, "pub", &point, point.count, &count) == 1, count == 65,
      point[0] == 4
    else {
      ERR_clear_error()
      throw .malformed("not a P-256 key")
    }
    try self.init(x: Array(point[1..<33]), y: Array(point[33..<65]))
  }

  /// - Parameter signature: 64 bytes, r ‖ s.
  package func isValidSignature(_ signature: [UInt8], for message: [UInt8]) -> Bool {
    guard signature.count == 64 else { return false }
    let numbers = Self.derInteger(signature[..<32]) + Self.derInteger(signature[32...])
    return isValidDERSignature([0x30, UInt8(numbers.count)] + numbers, for: message)
  }

  /// - Parameter number: at most 32 bytes, big endian.
  private static func derInteger(_ number: ArraySlice<UInt8>) -> [UInt8] {
    var digits = number.drop { $0 == 0 }
    // A number without this byte would be empty or negative.
    if digits.first.map({ $0 >= 0x80 }) ?? true { digits.insert(0, at: digits.startIndex) }
    return [0x02, UInt8(digits.count)] + digits
  }

  /// - Parameter signature: DER ECDSA-Sig-Value.
  package func isValidDERSignature(_ signature: [UInt8], for message: [UInt8]) -> Bool {
    key.isValidSignature(signature, ofDigest: SHA256.hash(message))
  }

  /// DER SubjectPublicKeyInfo (RFC 5480). The bytes before the uncompressed point are the same for every key.
  package var subjectPublicKeyInfo: [UInt8] {
    let header: [UInt8] = [
      0x30, 0x59, 0x30, 0x13, 0x06, 0x07, 0x2A, 0x86, 0x48, 0xCE, 0x3D, 0x02, 0x01, 0x06, 0x08, 0x2A, 0x86, 0x48, 0xCE,
      0x3D, 0x03, 0x01, 0x07, 0x03, 0x42, 0x00, 0x04,
    ]
    return header + x + y
  }

  package static func == (one: P256PublicKey, other: P256PublicKey) -> Bool { one.x == other.x && one.y == other.y }
}
