// SPDX-License-Identifier: Apache-2.0
import COpenSSL
package import Secrets

/// HOTP (RFC 4226) and TOTP (RFC 6238): the code for one moving factor. The caller stores the secret and the counter.
package enum OneTimePassword {
  package enum Algorithm: String, Sendable, CaseIterable {
    case md5, sha1, sha224, sha256, sha384, sha512
  }

  package enum GenerationError: Error, Equatable, Sendable {
    /// Truncation reads four bytes at one of sixteen offsets. MD5 has only 16 bytes, so three offsets are too large.
    /// This factor has no code; other factors have one.
    case offsetBeyondDigest
  }

  /// The permitted numbers of digits.
  package static let digits = [6, 8]

  /// - Parameters:
  ///   - factor: the counter of HOTP, or the number of periods since 1970.
  ///   - secret: at least one byte.
  ///   - digits: 6 or 8.
  package static func code(
    factor: UInt64, secret: SecretBytes, algorithm: Algorithm, digits: Int
  ) throws(GenerationError) -> String {
    precondition(Self.digits.contains(digits), "a code of \(digits) digits")
    var digest = hmac(of: factor, secret, algorithm)
    defer { cleanse(&digest) }
    let offset = digest[digest.count - 1] & 0x0F
    guard Int(offset) + 3 < digest.count else { throw .offsetBeyondDigest }
    let bytes = (0...3).map { byte(at: offset + $0, of: digest) }
    let number = bytes.reduce(UInt32(0)) { $0 << 8 | UInt32($1) } & 0x7FFF_FFFF
    let code = String(number % (digits == 8 ? 100_000_000 : 1_000_000))
    return String(repeating: "0", count: digits - code.count) + code
  }

  private static func hmac(of factor: UInt64, _ secret: SecretBytes, _ algorithm: Algorithm) -> [UInt8] {
    let message = withUnsafeBytes(of: factor.bigEndian) { Array($0) }
    var digest = [UInt8](repeating: 0, count: Int(EVP_MAX_MD_SIZE))
    var count: UInt32 = 0
    secret.withExposedSecret { key in
      precondition(
        HMAC(
          algorithm.function, key.baseAddress, Int32(key.count), message, message.count, &digest, &count) != nil)
    }
    digest.removeSubrange(Int(count)...)
    return digest
  }

  /// Reads every byte, because the offset is part of the secret digest.
  private static func byte(at offset: UInt8, of digest: [UInt8]) -> UInt8 {
    digest.indices.reduce(0) { found, index in found | mask(UInt8(index), is: offset) & digest[index] }
  }
}

extension OneTimePassword.Algorithm {
  fileprivate var function: OpaquePointer {
    switch self {
    case .md5: EVP_md5()
    case .sha1: EVP_sha1()
    case .sha224: EVP_sha224()
    case .sha256: EVP_sha256()
    case .sha384: EVP_sha384()
    case .sha512: EVP_sha512()
    }
  }
}
