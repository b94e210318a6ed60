// SPDX-License-Identifier: Apache-2.0
import COpenSSL
package import Secrets

/// Random bytes from OpenSSL's generator, which the kernel seeds. If the generator fails, the process ends, because no
/// safe continuation exists.
package enum Random {
  package static func bytes(_ count: Int) -> [UInt8] {
    [UInt8](unsafeUninitializedCapacity: count) { buffer, initialized in
      precondition(RAND_bytes(buffer.baseAddress, Int32(count)) == 1, "no randomness")
      initialized = count
    }
  }

  package static func secret(_ count: Int) -> SecretBytes {
    SecretBytes(count: count) { (target: UnsafeMutableRawBufferPointer) in
      precondition(RAND_priv_bytes(target.bindMemory(to: UInt8.self).baseAddress, Int32(count)) == 1, "no randomness")
    }
  }

  /// A version 4 UUID (RFC 9562 §5.4), lower case.
  package static func uuid() -> String {
    uuidText(bytes(16), version: 4)
  }
}

/// A version 8 UUID (RFC 9562 §5.8) from the first 128 bits of a hash. Deterministic.
package func derivedUUID(_ hash: [UInt8]) -> String { uuidText(Array(hash.prefix(16)), version: 8) }

private func uuidText(_ bits: [UInt8], version: UInt8) -> String {
  var bytes = bits
  bytes[6] = bytes[6] & 0x0F | version << 4
  bytes[8] = bytes[8] & 0x3F | 0x80
  let hex = Array(bytes.lowercaseHex.utf8)
  return [0..<8, 8..<12, 12..<16, 16..<20, 20..<32].map { String(decoding: hex[$0], as: UTF8.self) }
    .joined(separator: "-")
}
