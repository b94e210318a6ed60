// Answers as masks, 0xFF for yes and 0x00 for no, so that questions about digits are asked without a branch and without
// looking anything up by a digit. What these make of secret bytes is as secret as they are.

/// Whether they are the same.
func equalMask(_ one: UInt8, _ other: UInt8) -> UInt8 {
  UInt8(truncatingIfNeeded: (UInt16(one ^ other) &- 1) >> 8)
}

/// Whether `one` is less than `other`.
func lessMask(_ one: UInt8, than other: UInt8) -> UInt8 {
  UInt8(truncatingIfNeeded: (UInt16(one) &- UInt16(other)) >> 8)
}

/// `yes` where the mask says yes, else `no`.
func select(_ mask: UInt8, _ yes: UInt8, else no: UInt8) -> UInt8 {
  mask & yes | ~mask & no
}
