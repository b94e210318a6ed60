// SPDX-License-Identifier: Apache-2.0
import Cryptography

/// Encodes `application/x-www-form-urlencoded` (WHATWG URL §5.2); a space becomes `%20`.
func formEncoded(_ members: [(String, String)]) -> String {
  members.map { name, value in "\(escaped(name))=\(escaped(value))" }.joined(separator: "&")
}

private func escaped(_ text: String) -> String {
  text.utf8.map { byte in
    let character = Character(Unicode.Scalar(byte))
    let isPlain = character.isASCII && (character.isLetter || character.isNumber || "-._".contains(character))
    return isPlain ? String(character) : "%" + [byte].uppercaseHex
  }.joined()
}
