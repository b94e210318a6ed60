// SPDX-License-Identifier: Apache-2.0

// Comparisons of secret bytes in constant time. The results are masks, 0xFF for true and 0x00 for false, computed
// without branches and without table lookups. A result is as secret as its operands.

/// Whether the bytes are equal.
package func mask(_ byte: UInt8, is other: UInt8) -> UInt8 {
  UInt8(truncatingIfNeeded: (UInt16(byte ^ other) &- 1) >> 8)
}

/// Whether the first byte is less than the second.
package func mask(_ byte: UInt8, isLessThan other: UInt8) -> UInt8 {
  UInt8(truncatingIfNeeded: (UInt16(byte) &- UInt16(other)) >> 8)
}

/// Whether the byte is in the range. The bounds are not secret.
package func mask(_ byte: UInt8, isIn range: ClosedRange<UInt8>) -> UInt8 {
  ~(mask(byte, isLessThan: range.lowerBound) | mask(range.upperBound, isLessThan: byte))
}

/// `yes` where the mask is set, otherwise `no`.
package func select(_ mask: UInt8, _ yes: UInt8, else no: UInt8) -> UInt8 {
  mask & yes | ~mask & no
}
