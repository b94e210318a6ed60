// SPDX-License-Identifier: Apache-2.0
import Cryptography
import Secrets

/// Parses the hexadecimal text of a published vector; white space is ignored.
func hex(_ text: String) -> [UInt8] {
  let digits = text.filter { !$0.isWhitespace }.compactMap(\.hexDigitValue)
  return stride(from: 0, to: digits.count, by: 2).map { UInt8(digits[$0] << 4 | digits[$0 + 1]) }
}

func secret(_ bytes: [UInt8]) -> SecretBytes { SecretBytes(copying: bytes) }

func exposed(_ secret: SecretBytes) -> [UInt8] { secret.withExposedSecret { Array($0) } }

/// All variants of the bytes with one bit changed.
func flips(of bytes: [UInt8]) -> [[UInt8]] {
  bytes.indices.flatMap { index in
    (0..<8).map { bit in
      var changed = bytes
      changed[index] ^= 1 << bit
      return changed
    }
  }
}
