import Cryptography

/// Base64 in either alphabet, padded or not: AM writes the same kind of value one way into URIs and another into
/// messages.
/// - Returns: nil for any other character, and for bits that no byte has.
func bytes(lenientBase64 text: String) -> [UInt8]? {
  let letters = text.utf8.withoutPadding.map { letter in
    switch letter {
    case UInt8(ascii: "+"): UInt8(ascii: "-")
    case UInt8(ascii: "/"): UInt8(ascii: "_")
    default: letter
    }
  }
  return bytes(base64URL: String(decoding: letters, as: UTF8.self))
}

/// Base32 in either case, padded or not, with blanks and dashes where people like to see them. `0`, `1` and `8` are no
/// letters of it, and what somebody meant by them is not guessed.
func bytes(lenientBase32 text: String) -> [UInt8]? {
  let lowerCase = UInt8(ascii: "a")...UInt8(ascii: "z")
  let letters = text.utf8.withoutPadding.filter { !" -".utf8.contains($0) }.map { lowerCase ~= $0 ? $0 - 32 : $0 }
  let padding = String(repeating: "=", count: (8 - letters.count % 8) % 8)
  return bytes(base32: String(decoding: letters, as: UTF8.self) + padding)
}

extension BidirectionalCollection<UInt8> {
  fileprivate var withoutPadding: SubSequence {
    self[..<(lastIndex { $0 != UInt8(ascii: "=") }.map(index(after:)) ?? startIndex)]
  }
}
