// SPDX-License-Identifier: Apache-2.0
extension OfflineAttack {
  /// One token in two places: the same 8 bytes at the start or the end, under any PINs. Compares all pairs of blobs and
  /// PINs with a hash table. Chance: 10¹² pairs in 2⁶⁴.
  func joins() -> [Sign] {
    [(0, "beginning"), (3, "end")].flatMap { word, place in
      var seen: [UInt64: (blob: Int, pin: Int)] = [:]
      seen.reserveCapacity(blobs.count * pins.count)
      var signs: [Sign] = []
      for (blob, tokens) in tokens.enumerated() {
        for (pin, token) in tokens.enumerated() {
          if let first = seen.updateValue((blob, pin), forKey: token[word]) {
            signs.append(
              Sign(what: "tokens \(first.blob) and \(blob) have one \(place)", pins: [pins[first.pin], pins[pin]]))
          }
        }
      }
      return signs
    }
  }

  /// Two tokens under one PIN that are nearly equal or nearly complementary: at most 64 of 256 bits differ or agree.
  /// Chance: eight standard deviations, 10⁻¹⁵ per pair.
  func relations() -> [Sign] {
    var signs: [Sign] = []
    for one in tokens.indices {
      for other in tokens.indices where other > one {
        for pin in pins.indices {
          let difference = tokens[one][pin] ^ tokens[other][pin]
          if !(65..<192).contains(ones(in: difference)) {
            signs.append(Sign(what: "tokens \(one) and \(other) are related", pins: [pins[pin]]))
          }
        }
      }
    }
    return signs
  }

  /// A token that is not 32 random bytes: a text, biased bits, or a checksum in the last four bytes. Chance: 10⁻¹⁴,
  /// 10⁻¹⁵, and 2⁻³² per token and checksum.
  func structures() -> [Sign] {
    var signs: [Sign] = []
    for (blob, tokens) in tokens.enumerated() {
      for (pin, token) in tokens.enumerated() {
        let bytes = bytes(token)
        let found =
          if bytes.allSatisfy({ (0x20...0x7E).contains($0) }) {
            "is a text"
          } else if !(65..<192).contains(ones(in: token)) {
            "is biased"
          } else if Array(bytes[28...]) == Array(Formula.sha256(Array(bytes[..<28]))[..<4]) {
            "ends in a digest of itself"
          } else if checksums(of: bytes[..<28]).contains(Array(bytes[28...])) {
            "ends in a checksum of itself"
          } else {
            ""
          }
        if !found.isEmpty { signs.append(Sign(what: "token \(blob) \(found)", pins: [pins[pin]])) }
      }
    }
    return signs
  }

  /// The number of pairs of tokens that agree in three bytes at an offset, and the expected number by chance: n²/2
  /// pairs in 2²⁴.
  /// - Parameter offset: 0 to 29.
  package func coincidences(at offset: Int) -> (found: Int, expected: Double) {
    var counts = [UInt32](repeating: 0, count: 1 << 24)
    var found = 0
    for token in tokens.joined() {
      let bytes = bytes(token)
      let window = Int(bytes[offset]) << 16 | Int(bytes[offset + 1]) << 8 | Int(bytes[offset + 2])
      found += Int(counts[window])
      counts[window] += 1
    }
    let count = Double(blobs.count * pins.count)
    return (found, count * (count - 1) / 2 / Double(1 << 24))
  }

  private func ones(in words: SIMD4<UInt64>) -> Int {
    words[0].nonzeroBitCount + words[1].nonzeroBitCount + words[2].nonzeroBitCount + words[3].nonzeroBitCount
  }

  /// CRC-32 (ISO 3309), as both byte orders.
  private func checksums(of bytes: ArraySlice<UInt8>) -> [[UInt8]] {
    var remainder: UInt32 = 0xFFFF_FFFF
    for byte in bytes {
      remainder = remainder >> 8 ^ crcTable[Int(UInt8(truncatingIfNeeded: remainder) ^ byte)]
    }
    return [(~remainder).bigEndian, (~remainder).littleEndian].map { withUnsafeBytes(of: $0) { Array($0) } }
  }
}

private let crcTable: [UInt32] = (0..<256).map { index in
  (0..<8).reduce(UInt32(index)) { value, _ in value & 1 == 1 ? value >> 1 ^ 0xEDB8_8320 : value >> 1 }
}
