// Answers as masks, 0xFF for yes and 0x00 for no, so that questions about a usage are asked without a branch.

func mask(_ byte: UInt8, is other: UInt8) -> UInt8 {
  UInt8(truncatingIfNeeded: (UInt16(byte ^ other) &- 1) >> 8)
}

func mask(_ byte: UInt8, isIn range: ClosedRange<UInt8>) -> UInt8 {
  // Either difference borrows if the byte is outside.
  ~UInt8(
    truncatingIfNeeded: ((UInt16(byte) &- UInt16(range.lowerBound)) | (UInt16(range.upperBound) &- UInt16(byte))) >> 8)
}
