// SPDX-License-Identifier: Apache-2.0
import Cryptography

/// Decodes Base64 in either alphabet, with or without padding: AM uses different variants in URIs and in messages.
/// - Returns: nil for any other character, and for non-zero trailing bits.
package func bytes(lenientBase64 text: String) -> [UInt8]? {
  let letters = text.utf8.withoutPadding.map { letter in
    switch letter {
    case UInt8(ascii: "+"): UInt8(ascii: "-")
    case UInt8(ascii: "/"): UInt8(ascii: "_")
    default: letter
    }
  }
  return bytes(base64URL: String(decoding: letters, as: UTF8.self))
}

/// Decodes Base32 in either case, with or without padding. Spaces and dashes are ignored, and so are up to four bits
/// after the last whole byte: sites choose random letters.
/// - Returns: nil for any other character, and for 1, 3 or 6 letters after the last group of eight: no bytes have that
///   length, so letters are missing. `0`, `1` and `8` are not replaced by similar letters.
func bytes(lenientBase32 text: String) -> [UInt8]? {
  let lowerCase = UInt8(ascii: "a")...UInt8(ascii: "z")
  let letters = text.utf8.withoutPadding.filter { !" -".utf8.contains($0) }.map { lowerCase ~= $0 ? $0 - 32 : $0 }
  guard ![1, 3, 6].contains(letters.count % 8) else { return nil }
  // Completes the group with zero bits, whose bytes are dropped together with the bits before them.
  let missing = String(repeating: "A", count: (8 - letters.count % 8) % 8)
  guard var octets = bytes(base32: String(decoding: letters, as: UTF8.self) + missing) else { return nil }
  octets.removeLast(octets.count - letters.count * 5 / 8)
  return octets
}

extension BidirectionalCollection<UInt8> {
  fileprivate var withoutPadding: SubSequence {
    self[..<(lastIndex { $0 != UInt8(ascii: "=") }.map(index(after:)) ?? startIndex)]
  }
}
