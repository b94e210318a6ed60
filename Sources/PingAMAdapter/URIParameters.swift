import Cryptography
import MobileAuth

/// The query of a registration URI. AM joins names and values without escaping either, so that only the first `=` of a
/// pair parts them, and a plus sign is a plus sign.
struct URIParameters: Sendable {
  private var values: [String: String] = [:]

  init(_ query: Substring.UTF8View) throws(RegistrationURI.Flaw) {
    for pair in query.split(separator: UInt8(ascii: "&")) {
      let equals = pair.firstIndex(of: UInt8(ascii: "=")) ?? pair.endIndex
      guard let name = percentDecoded(pair[..<equals]) else { throw .malformed("a parameter's name") }
      guard let value = percentDecoded(pair[equals...].dropFirst()) else { throw .malformed(name.forPeople) }
      // Two readers would take two different ones.
      guard values.updateValue(value, forKey: name) == nil else { throw .repeated(name.forPeople) }
    }
  }

  /// As it is written, percent-decoded. AM writes an empty value where it has none.
  subscript(name: String) -> String? { values[name].flatMap { $0.isEmpty ? nil : $0 } }

  func required(_ name: String) throws(RegistrationURI.Flaw) -> String {
    guard let value = self[name] else { throw .missing(name) }
    return value
  }

  /// What the Base64 in the parameter stands for.
  func bytes(_ name: String) throws(RegistrationURI.Flaw) -> [UInt8]? {
    guard let value = self[name] else { return nil }
    guard let bytes = PingAMAdapter.bytes(lenientBase64: value) else { throw .malformed(name) }
    return bytes
  }

  /// The text that the Base64 in the parameter stands for. Nothing invisible may be in it.
  func text(_ name: String) throws(RegistrationURI.Flaw) -> String? {
    guard let bytes = try bytes(name) else { return nil }
    guard let text = String(validating: bytes, as: UTF8.self), !text.hasControlCharacters else {
      throw .malformed(name)
    }
    return text.isEmpty ? nil : text
  }

  func number(_ name: String, in range: ClosedRange<Int64>) throws(RegistrationURI.Flaw) -> Int64? {
    guard let value = self[name] else { return nil }
    guard value.utf8.allSatisfy({ (0x30...0x39).contains($0) }), let number = Int64(value), range.contains(number)
    else { throw .malformed(name) }
    return number
  }
}
