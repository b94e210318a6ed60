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
      guard bytes.count == head.count + scalarBytes + curve.count + pointBytes, bytes.starts(with: head),
        bytes.dropFirst(head.count + scalarBytes).starts(with: curve),
        let start = bytes.bindMemory(to: UInt8.self).baseAddress,
        let key = approval_p256_key(start + head.count, start + bytes.count - pointBytes)
      else {
        ERR_clear_error()
        return nil
      }
      return EVPKey(owning: key)
    }
  }
}
