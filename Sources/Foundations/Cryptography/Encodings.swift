// SPDX-License-Identifier: Apache-2.0
/// Hexadecimal, Base64 (RFC 4648 §4), Base64url without padding (§5) and Base32 with padding (§6). Decoding is strict:
/// no white space, no nonzero trailing bits, no missing or extra padding.
extension Collection where Element == UInt8 {
  package var lowercaseHex: String { hex(digits: Array("0123456789abcdef".utf8)) }
  package var uppercaseHex: String { hex(digits: Array("0123456789ABCDEF".utf8)) }
  package var base64: String { text(alphabet: standardAlphabet, bitsEach: 6, group: 4) }
  package var base64URL: String { text(alphabet: urlAlphabet, bitsEach: 6, group: 1) }
  package var base32: String { text(alphabet: base32Alphabet, bitsEach: 5, group: 8) }

  private func hex(digits: [UInt8]) -> String {
    var text: [UInt8] = []
    text.reserveCapacity(2 * count)
    for byte in self {
      text.append(digits[Int(byte >> 4)])
      text.append(digits[Int(byte & 15)])
    }
    return String(decoding: text, as: UTF8.self)
  }

  /// - Parameter group: the text is padded to a multiple of this number of letters.
  private func text(alphabet: [UInt8], bitsEach width: Int, group: Int) -> String {
    var text: [UInt8] = []
    text.reserveCapacity((count * 8 / width / group + 1) * group)
    var bits = 0
    var bitCount = 0
    for byte in self {
      bits = bits << 8 | Int(byte)
      bitCount += 8
      while bitCount >= width {
        bitCount -= width
        text.append(alphabet[bits >> bitCount & (1 << width - 1)])
      }
      bits &= (1 << bitCount) - 1
    }
    if bitCount > 0 { text.append(alphabet[bits << (width - bitCount) & (1 << width - 1)]) }
    while text.count % group != 0 { text.append(UInt8(ascii: "=")) }
    return String(decoding: text, as: UTF8.self)
  }
}

/// Decodes padded Base64; nil if the text is invalid.
package func bytes(base64 text: String) -> [UInt8]? {
  guard text.utf8.count % 4 == 0 else { return nil }
  let padding = text.utf8.reversed().prefix { $0 == UInt8(ascii: "=") }.count
  guard padding <= 2 else { return nil }
  return decode(text.utf8.dropLast(padding), alphabet: standardValues, bitsEach: 6)
}

/// Decodes padded, upper-case Base32; nil if the text is invalid.
package func bytes(base32 text: String) -> [UInt8]? {
  guard text.utf8.count % 8 == 0 else { return nil }
  let padding = text.utf8.reversed().prefix { $0 == UInt8(ascii: "=") }.count
  guard [0, 1, 3, 4, 6].contains(padding) else { return nil }
  return decode(text.utf8.dropLast(padding), alphabet: base32Values, bitsEach: 5)
}

/// Decodes unpadded Base64url; nil if the text is invalid.
package func bytes(base64URL text: String) -> [UInt8]? {
  decode(text.utf8[...], alphabet: urlValues, bitsEach: 6)
}

private let standardAlphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)
private let urlAlphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_".utf8)
private let base32Alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZ234567".utf8)
private let standardValues = values(of: standardAlphabet)
private let urlValues = values(of: urlAlphabet)
private let base32Values = values(of: base32Alphabet)

private func values(of alphabet: [UInt8]) -> [UInt8?] {
  var values = [UInt8?](repeating: nil, count: 256)
  for (value, letter) in alphabet.enumerated() { values[Int(letter)] = UInt8(value) }
  return values
}

private func decode(_ text: Substring.UTF8View, alphabet: [UInt8?], bitsEach width: Int) -> [UInt8]? {
  var bytes: [UInt8] = []
  bytes.reserveCapacity(text.count * width / 8)
  var bits = 0
  var bitCount = 0
  for letter in text {
    guard let value = alphabet[Int(letter)] else { return nil }
    bits = bits << width | Int(value)
    bitCount += width
    if bitCount >= 8 {
      bitCount -= 8
      bytes.append(UInt8(truncatingIfNeeded: bits >> bitCount))
      bits &= (1 << bitCount) - 1
    }
  }
  // A single letter does not complete a byte. Nonzero trailing bits would give one value several encodings.
  guard bitCount < width, bits == 0 else { return nil }
  return bytes
}
