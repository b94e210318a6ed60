/// Hexadecimal, Base64 (RFC 4648 §4) and Base64url without padding (§5). Decoding is strict: no white space, no
/// stray bits, no missing or extra padding.
extension Collection where Element == UInt8 {
  public var lowercaseHex: String { hex(digits: Array("0123456789abcdef".utf8)) }
  public var uppercaseHex: String { hex(digits: Array("0123456789ABCDEF".utf8)) }
  public var base64: String { base64Text(alphabet: standardAlphabet, padded: true) }
  public var base64URL: String { base64Text(alphabet: urlAlphabet, padded: false) }

  private func hex(digits: [UInt8]) -> String {
    String(decoding: flatMap { [digits[Int($0 >> 4)], digits[Int($0 & 15)]] }, as: UTF8.self)
  }

  private func base64Text(alphabet: [UInt8], padded: Bool) -> String {
    var text: [UInt8] = []
    text.reserveCapacity((count + 2) / 3 * 4)
    var bits = 0
    var bitCount = 0
    for byte in self {
      bits = bits << 8 | Int(byte)
      bitCount += 8
      while bitCount >= 6 {
        bitCount -= 6
        text.append(alphabet[bits >> bitCount & 63])
      }
      bits &= (1 << bitCount) - 1
    }
    if bitCount > 0 { text.append(alphabet[bits << (6 - bitCount) & 63]) }
    while padded, text.count % 4 != 0 { text.append(UInt8(ascii: "=")) }
    return String(decoding: text, as: UTF8.self)
  }
}

/// The bytes of a padded Base64 text, or nil if it is not exactly that.
public func bytes(base64 text: String) -> [UInt8]? {
  guard text.utf8.count % 4 == 0 else { return nil }
  let padding = text.utf8.reversed().prefix { $0 == UInt8(ascii: "=") }.count
  guard padding <= 2 else { return nil }
  return decode(text.utf8.dropLast(padding), alphabet: standardValues)
}

/// The bytes of an unpadded Base64url text, or nil if it is not exactly that.
public func bytes(base64URL text: String) -> [UInt8]? {
  decode(text.utf8[...], alphabet: urlValues)
}

private let standardAlphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/".utf8)
private let urlAlphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_".utf8)
private let standardValues = values(of: standardAlphabet)
private let urlValues = values(of: urlAlphabet)

private func values(of alphabet: [UInt8]) -> [UInt8?] {
  var values = [UInt8?](repeating: nil, count: 256)
  for (value, letter) in alphabet.enumerated() { values[Int(letter)] = UInt8(value) }
  return values
}

private func decode(_ text: Substring.UTF8View, alphabet: [UInt8?]) -> [UInt8]? {
  var bytes: [UInt8] = []
  bytes.reserveCapacity(text.count * 3 / 4)
  var bits = 0
  var bitCount = 0
  for letter in text {
    guard let value = alphabet[Int(letter)] else { return nil }
    bits = bits << 6 | Int(value)
    bitCount += 6
    if bitCount >= 8 {
      bitCount -= 8
      bytes.append(UInt8(truncatingIfNeeded: bits >> bitCount))
      bits &= (1 << bitCount) - 1
    }
  }
  // One letter alone carries no byte, and the bits left over must be zero, or two texts would mean one value.
  guard bitCount < 6, bits == 0 else { return nil }
  return bytes
}
