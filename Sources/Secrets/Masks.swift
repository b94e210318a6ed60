// Answers as masks, 0xFF for yes and 0x00 for no, so that questions about digits are asked without a branch and without
// looking anything up by a digit. What these make of secret bytes is as secret as they are.

/// Whether they are the same.
public func mask(_ byte: UInt8, is other: UInt8) -> UInt8 {
  UInt8(truncatingIfNeeded: (UInt16(byte ^ other) &- 1) >> 8)
}

/// Whether it is less than the other.
public func mask(_ byte: UInt8, isLessThan other: UInt8) -> UInt8 {
  UInt8(truncatingIfNeeded: (UInt16(byte) &- UInt16(other)) >> 8)
}

/// Whether it is in the range, whose bounds are no secret.
public func mask(_ byte: UInt8, isIn range: ClosedRange<UInt8>) -> UInt8 {
  ~(mask(byte, isLessThan: range.lowerBound) | mask(range.upperBound, isLessThan: byte))
}

/// `yes` where the mask says yes, else `no`.
public func select(_ mask: UInt8, _ yes: UInt8, else no: UInt8) -> UInt8 {
  mask & yes | ~mask & no
}
