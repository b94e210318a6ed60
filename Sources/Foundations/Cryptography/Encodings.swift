// SPDX-License-Identifier: Apache-2.0
/// Hexadecimal, Base64 (RFC 4648 §4), Base64url without padding (§5) and Base32 with padding (§6). Decoding is strict:
/// no white space, no nonzero trailing bits, no missing or extra padding.
extension Collection where Element == UInt8 {
  package var lowercaseHex: String { withBytes { hex($0, digits: lowercaseDigits) } }
  package var uppercaseHex: String { withBytes { hex($0, digits: uppercaseDigits) } }
  package var base64: String { withBytes { text($0, alphabet: standardAlphabet, bitsEach: 6, group: 4) } }
  package var base64URL: String { withBytes { text($0, alphabet: urlAlphabet, bitsEach: 6, group: 1) } }
  package var base32: String { withBytes { text($0, alphabet: base32Alphabet, bitsEach: 5, group: 8) } }

  /// The loops are not generic, because callers in other modules would run them unspecialized: a call for each byte.
  private func withBytes(_ encode: (UnsafeBufferPointer<UInt8>) -> String) -> String {
    withContiguousStorageIfAvailable(encode) ?? Array(self).withUnsafeBufferPointer(encode)
  }
}

private func hex(_ bytes: UnsafeBufferPointer<UInt8>, digits: [UInt8]) -> String {
  String(unsafeUninitializedCapacity: 2 * bytes.count) { text in
    for (index, byte) in bytes.enumerated() {
      text[2 * index] = digits[Int(byte >> 4)]
      text[2 * index + 1] = digits[Int(byte & 15)]
    }
    return 2 * bytes.count
  }
}

/// - Parameter group: the text is padded to a multiple of this number of letters.
private func text(
  _ bytes: UnsafeBufferPointer<UInt8>, alphabet: [UInt8], bitsEach width: Int, group: Int
) -> String {
  String(unsafeUninitializedCapacity: (bytes.count * 8 / width / group + 1) * group) { text in
    var count = 0
    func append(_ letter: UInt8) {
      text[count] = letter
      count += 1
    }
    var bits = 0
    var bitCount = 0
    for byte in bytes {
      bits = bits << 8 | Int(byte)
      bitCount += 8
      while bitCount >= width {
        bitCount -= width
        append(alphabet[bits >> bitCount & (1 << width - 1)])
      }
      bits &= (1 << bitCount) - 1
    }
    if bitCount > 0 { append(alphabet[bits << (width - bitCount) & (1 << width - 1)]) }
    while count % group != 0 { append(UInt8(ascii: "=")) }
    return count
  }
}

/// Decodes padded Base64; nil if the text is invalid.
package func bytes(base64 text: String) -> [UInt8]? {
  guard text.utf8.count % 4 == 0 else { return nil }
  let padding = text.utf8.reversed().prefix { $0 == UInt8(ascii: "=") }.count
  guard padding <= 2 else { return nil }
  return decode(text.utf8.dropLast(padding), values: standardValues, bitsEach: 6)
}

/// Decodes padded, upper-case Base32; nil if the text is invalid.
package func bytes(base32 text: String) -> [UInt8]? {
  guard text.utf8.count % 8 == 0 else { return nil }
  let padding = text.utf8.reversed().prefix { $0 == UInt8(ascii: "=") }.count
  guard [0, 1, 3, 4, 6].contains(padding) else { return nil }
  return decode(text.utf8.dropLast(padding), values: base32Values, bitsEach: 5)
}

/// Decodes unpadded Base64url; nil if the text is invalid.
package func bytes(base64URL text: String) -> [UInt8]? { bytes(base64URL: text.utf8[...]) }

func bytes(base64URL text: Substring.UTF8View) -> [UInt8]? { decode(text, values: urlValues, bitsEach: 6) }

private let lowercaseDigits = Array("0123456789abcdef".utf8)
private let uppercaseDigits = Array("0123456789ABCDEF".utf8)
private let standardAlphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)
private let urlAlphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_".utf8)
private let base32Alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZ234567".utf8)
private let standardValues = values(of: standardAlphabet)
private let urlValues = values(of: urlAlphabet)
private let base32Values = values(of: base32Alphabet)

/// In place of the value of a byte that is no letter.
private let noValue: UInt8 = 0xFF

private func values(of alphabet: [UInt8]) -> [UInt8] {
  var values = [UInt8](repeating: noValue, count: 256)
  for (value, letter) in alphabet.enumerated() { values[Int(letter)] = UInt8(value) }
  return values
}

private func decode(_ text: Substring.UTF8View, values: [UInt8], bitsEach width: Int) -> [UInt8]? {
  text.withContiguousStorageIfAvailable { decode($0, values, bitsEach: width) }
    ?? Array(text).withUnsafeBufferPointer { decode($0, values, bitsEach: width) }
}

private func decode(_ text: UnsafeBufferPointer<UInt8>, _ values: [UInt8], bitsEach width: Int) -> [UInt8]? {
  var bytes: [UInt8] = []
  bytes.reserveCapacity(text.count * width / 8)
  var bits = 0
  var bitCount = 0
  for letter in text {
    let value = values[Int(letter)]
    guard value != noValue else { return nil }
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
