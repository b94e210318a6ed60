// SPDX-License-Identifier: Apache-2.0
import COpenSSL
import Secrets

/// A P-256 private key as `exportedSecret()` writes it: DER (RFC 5915) with the curve and the public point, 121 bytes,
/// which are the same for every key but for the scalar and the point. OpenSSL's decoder reads every format, and keeps
/// 60 KiB for that.
enum P256Secret {
  private static let head: [UInt8] = [0x30, 0x77, 0x02, 0x01, 0x01, 0x04, 0x20]
  private static let curve: [UInt8] = [
    0xA0, 0x0A, 0x06, 0x08, 0x2A, 0x86, 0x48, 0xCE, 0x3D, 0x03, 0x01, 0x07, 0xA1, 0x44, 0x03, 0x42, 0x00,
  ]
  private static let scalarBytes = 32
  private static let pointBytes = 65

  /// - Returns: nil for another format, or for what OpenSSL refuses.
  static func key(_ secret: SecretBytes) -> EVPKey? {
    secret.withExposedSecret { (bytes) -> EVPKey? in
      let (scalar, rest) = (bytes.dropFirst(head.count).prefix(scalarBytes), bytes.dropFirst(head.count + scalarBytes))
      guard bytes.count == head.count + scalarBytes + curve.count + pointBytes, bytes.starts(with: head),
        rest.starts(with: curve)
      else { return nil }
      return key(scalar: scalar, point: Array(rest.dropFirst(curve.count)))
    }
  }

  private static func key(scalar: Slice<UnsafeRawBufferPointer>, point: [UInt8]) -> EVPKey? {
    let context = EVP_PKEY_CTX_new_from_name(nil, "EC", nil)
    // Secure: the parameters are zeroed when they are freed.
    let number = BN_secure_new()
    let builder = OSSL_PARAM_BLD_new()
    defer {
      EVP_PKEY_CTX_free(context)
      BN_clear_free(number)
      OSSL_PARAM_BLD_free(builder)
      ERR_clear_error()
    }
    let start = UnsafeRawBufferPointer(rebasing: scalar).bindMemory(to: UInt8.self).baseAddress
    guard BN_bin2bn(start, Int32(scalarBytes), number) != nil,
      OSSL_PARAM_BLD_push_utf8_string(builder, OSSL_PKEY_PARAM_GROUP_NAME, "P-256", 0) == 1,
      OSSL_PARAM_BLD_push_BN(builder, OSSL_PKEY_PARAM_PRIV_KEY, number) == 1,
      OSSL_PARAM_BLD_push_octet_string(builder, OSSL_PKEY_PARAM_PUB_KEY, point, point.count) == 1,
      let parameters = OSSL_PARAM_BLD_to_param(builder)
    else { return nil }
    defer { OSSL_PARAM_free(parameters) }
    var key: OpaquePointer?
    guard EVP_PKEY_fromdata_init(context) == 1,
      EVP_PKEY_fromdata(context, &key, APPROVAL_EVP_PKEY_KEYPAIR, parameters) == 1, let key
    else { return nil }
    return EVPKey(owning: key)
  }
}
