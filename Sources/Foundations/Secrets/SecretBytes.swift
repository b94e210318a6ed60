// SPDX-License-Identifier: Apache-2.0
import COpenSSL

/// Immutable secret bytes: locked in memory, excluded from core dumps, zeroed when the last reference is released,
/// compared in constant time. They have no description and are accessible only through `withExposedSecret`.
package final class SecretBytes: Sendable {
  /// Written only during `init`.
  private let buffer: SecretBuffer

  /// Number of bytes. Not secret.
  package var count: Int { buffer.count }

  /// Creates `count` secret bytes and lets `fill` write them in place. They are zeroed if `fill` throws.
  package init<Failure: Error>(
    count: Int, filledBy fill: (UnsafeMutableRawBufferPointer) throws(Failure) -> Void
  ) throws(Failure) {
    var buffer = SecretBuffer(count: count)
    try buffer.withMutableBytes(fill)
    self.buffer = buffer
  }

  /// Copies bytes that are already in ordinary memory. The caller must zero its own copy.
  package convenience init(copying bytes: some Collection<UInt8>) {
    self.init(count: bytes.count) { (target: UnsafeMutableRawBufferPointer) in target.copyBytes(from: bytes) }
  }

  /// The only access to the bytes. Bytes that the closure copies are no longer protected by this type.
  package func withExposedSecret<Result, Failure: Error>(
    _ body: (UnsafeRawBufferPointer) throws(Failure) -> Result
  ) throws(Failure) -> Result {
    try buffer.withBytes(body)
  }

  /// Whether lengths and bytes are equal. The time depends only on the length.
  package static func constantTimeEqual(_ one: SecretBytes, _ other: SecretBytes) -> Bool {
    one.count == other.count
      && one.buffer.withBytes { one in
        other.buffer.withBytes { other in CRYPTO_memcmp(one.baseAddress, other.baseAddress, one.count) == 0 }
      }
  }
}

/// Zeroes ordinary memory that held a secret temporarily, such as a buffer of a C library or a decoded string.
package func cleanse(_ bytes: inout [UInt8]) {
  bytes.withUnsafeMutableBytes { OPENSSL_cleanse($0.baseAddress, $0.count) }
}
