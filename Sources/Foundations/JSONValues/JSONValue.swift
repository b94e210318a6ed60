// SPDX-License-Identifier: Apache-2.0

/// A JSON value with arbitrary members, and its canonical text.
package enum JSONValue: Equatable, Sendable {
  case null
  case bool(Bool)
  case integer(Int64)
  case fraction(Double)
  case text(String)
  case list([JSONValue])
  case object([String: JSONValue])

  /// Parses one JSON text in UTF-8. Nil if `JSONSyntax` rejects it.
  package init?(parsing bytes: [UInt8]) { self.init(parsing: bytes, levels: JSONSyntax.deepest) }

  /// - Parameter levels: the maximum number of nested objects and arrays.
  package init?(parsing bytes: [UInt8], levels: Int) {
    guard let value = try? JSONSyntax.parse(bytes, levels: levels) else { return nil }
    self = value
  }

  /// An integer if the number is one of 64 bits. Nil for infinity and NaN, which JSON has not.
  init?(_ number: Double) {
    guard number.isFinite else { return nil }
    self = Int64(exactly: number).map { .integer($0) } ?? .fraction(number)
  }

  /// The JSON value that the text contains, or the text itself. A value of more than 16 levels is text, so that it can
  /// be a part of a message of at most `JSONSyntax.deepest` levels.
  package init(textOrJSON text: String) { self = JSONValue(parsing: Array(text.utf8), levels: 16) ?? .text(text) }

  package subscript(name: String) -> JSONValue? { if case .object(let members) = self { members[name] } else { nil } }
  package var text: String? { if case .text(let text) = self { text } else { nil } }
  package var bool: Bool? { if case .bool(let bool) = self { bool } else { nil } }
  package var integer: Int64? { if case .integer(let number) = self { number } else { nil } }
  package var list: [JSONValue]? { if case .list(let values) = self { values } else { nil } }

  /// The canonical form of RFC 8785: members sorted by their UTF-16 code units, no white space, only necessary escapes.
  /// Fractions of very small or large magnitude are formatted differently here: a valid signature over them is then
  /// rejected, and an invalid one is never accepted.
  package var canonical: String {
    var text = ""
    write(to: &text)
    return text
  }

  private func write(to output: inout String) {
    switch self {
    case .null: output += "null"
    case .bool(let bool): output += bool ? "true" : "false"
    case .integer(let number): output += "\(number)"
    case .fraction(let number): output += "\(number)"
    case .text(let text): Self.write(text, to: &output)
    case .list(let values):
      output += "["
      for (index, value) in values.enumerated() {
        if index > 0 { output += "," }
        value.write(to: &output)
      }
      output += "]"
    case .object(let members):
      output += "{"
      let sorted = members.sorted { $0.key.utf16.lexicographicallyPrecedes($1.key.utf16) }
      for (index, (name, value)) in sorted.enumerated() {
        if index > 0 { output += "," }
        Self.write(name, to: &output)
        output += ":"
        value.write(to: &output)
      }
      output += "}"
    }
  }

  private static func write(_ text: String, to output: inout String) {
    output += "\""
    defer { output += "\"" }
    guard text.utf8.contains(where: { $0 < 0x20 || $0 == UInt8(ascii: "\"") || $0 == UInt8(ascii: "\\") }) else {
      output += text
      return
    }
    for scalar in text.unicodeScalars {
      switch scalar {
      case "\"": output += "\\\""
      case "\\": output += "\\\\"
      case "\u{08}": output += "\\b"
      case "\u{09}": output += "\\t"
      case "\u{0A}": output += "\\n"
      case "\u{0C}": output += "\\f"
      case "\u{0D}": output += "\\r"
      case "\u{00}"..<"\u{20}": output += (scalar.value < 16 ? "\\u000" : "\\u00") + String(scalar.value, radix: 16)
      default: output.unicodeScalars.append(scalar)
      }
    }
  }
}
