// SPDX-License-Identifier: Apache-2.0
import COpenSSL
package import Secrets

/// The password hash scrypt (RFC 7914).
package enum Scrypt {
  package struct Parameters: Sendable, Equatable {
    /// CPU and memory cost N, a power of two.
    package var cost: UInt64
    /// The block size r.
    package var blockSize: UInt64
    /// The parallelization p.
    package var parallelization: UInt64

    /// Takes about 32 MiB.
    package static let standard = Parameters(cost: 1 << 15, blockSize: 8, parallelization: 1)

    package init(cost: UInt64, blockSize: UInt64, parallelization: UInt64) {
      self.cost = cost
      self.blockSize = blockSize
      self.parallelization = parallelization
    }

    /// The memory of a derivation in bytes: 128 · r · (N + p + 2).
    package var memory: UInt64 { 128 * blockSize * (cost + parallelization + 2) }

    /// The maximum memory of a derivation in bytes. It also bounds parameters from a damaged record.
    package static let largestMemory: UInt64 = 256 << 20

    /// Whether `derive` accepts these parameters: RFC 7914 §2 allows them, and they need at most `largestMemory`.
    package var areAccepted: Bool {
      guard cost > 1, cost & (cost - 1) == 0, cost <= 1 << 20, (1...32).contains(blockSize),
        (1...16).contains(parallelization)
      else { return false }
      return memory <= Self.largestMemory
    }
  }

  /// - Throws: `.malformed` for parameters that are not accepted.
  package static func derive(
    _ password: SecretBytes, salt: [UInt8], parameters: Parameters, count: Int = 32
  ) throws(CryptographyError) -> SecretBytes {
    let (n, r, p) = (parameters.cost, parameters.blockSize, parameters.parallelization)
    guard parameters.areAccepted else { throw .malformed("scrypt parameters N=\(n) r=\(r) p=\(p)") }
    return try SecretBytes(count: count) { (target: UnsafeMutableRawBufferPointer) throws(CryptographyError) in
      let derived = password.withExposedSecret { password in
        // OpenSSL zeroes its working memory before it frees it (crypto/evp: OPENSSL_clear_free).
        EVP_PBE_scrypt(
          password.bindMemory(to: CChar.self).baseAddress, password.count, salt, salt.count, n, r, p,
          Parameters.largestMemory, target.bindMemory(to: UInt8.self).baseAddress, count)
      }
      guard derived == 1 else { throw libraryFailure("scrypt") }
    }
  }
}
