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

/// Decodes Base32 in either case, with or without padding. Spaces and dashes are ignored.
/// - Returns: nil for any other character. `0`, `1` and `8` are not replaced by similar letters.
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
