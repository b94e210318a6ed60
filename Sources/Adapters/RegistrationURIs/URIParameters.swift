// SPDX-License-Identifier: Apache-2.0
import Cryptography
import DisplayText
import MobileAuth

/// The query of a registration URI. AM does not escape names and values: the first `=` separates a pair, and a plus
/// sign is not a space.
struct URIParameters: Sendable {
  private var values: [String: String] = [:]

  init(_ query: Substring.UTF8View) throws(RegistrationURI.ParseError) {
    for pair in query.split(separator: UInt8(ascii: "&")) {
      let equals = pair.firstIndex(of: UInt8(ascii: "=")) ?? pair.endIndex
      guard let name = percentDecoded(pair[..<equals]) else { throw .malformed("a parameter's name") }
      guard let value = percentDecoded(pair[equals...].dropFirst()) else { throw .malformed(name.sanitized) }
      // Two parsers could use different values of a repeated parameter.
      guard values.updateValue(value, forKey: name) == nil else { throw .repeated(name.sanitized) }
    }
  }

  /// The percent-decoded value; nil if it is missing or empty, because AM writes an empty value for none.
  subscript(name: String) -> String? { values[name].flatMap { $0.isEmpty ? nil : $0 } }

  func hasName(beginningWith prefix: String) -> Bool { values.keys.contains { $0.hasPrefix(prefix) } }

  func required(_ name: String) throws(RegistrationURI.ParseError) -> String {
    guard let value = self[name] else { throw .missing(name) }
    return value
  }

  /// The Base64-decoded value; nil if the parameter is missing or empty.
  func bytes(_ name: String) throws(RegistrationURI.ParseError) -> [UInt8]? {
    guard let value = self[name] else { return nil }
    guard let bytes = RegistrationURIs.bytes(lenientBase64: value) else { throw .malformed(name) }
    return bytes
  }

  /// The UTF-8 text in the Base64 value. Control characters are rejected.
  func text(_ name: String) throws(RegistrationURI.ParseError) -> String? {
    guard let bytes = try bytes(name) else { return nil }
    guard let text = String(validating: bytes, as: UTF8.self), !text.hasControlCharacters else {
      throw .malformed(name)
    }
    return text.isEmpty ? nil : text
  }

  func number(_ name: String, in range: ClosedRange<Int64>) throws(RegistrationURI.ParseError) -> Int64? {
    guard let value = self[name] else { return nil }
    guard value.utf8.allSatisfy({ (0x30...0x39).contains($0) }), let number = Int64(value), range.contains(number)
    else { throw .malformed(name) }
    return number
  }
}
