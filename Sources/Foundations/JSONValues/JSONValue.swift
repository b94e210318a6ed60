// SPDX-License-Identifier: Apache-2.0
import FoundationEssentials

/// A JSON value with arbitrary members, and its canonical text.
package enum JSONValue: Equatable, Sendable {
  case null
  case bool(Bool)
  case integer(Int64)
  case fraction(Double)
  case text(String)
  case list([JSONValue])
  case object([String: JSONValue])

  /// Parses one JSON text in UTF-8. Nil if `JSONSyntax` rejects it or a number is too large for a `Double`.
  package init?(parsing bytes: [UInt8]) { self.init(parsing: bytes, levels: JSONSyntax.deepest) }

  /// - Parameter levels: the maximum number of nested objects and arrays.
  package init?(parsing bytes: [UInt8], levels: Int) {
    guard (try? JSONSyntax.check(bytes, levels: levels)) != nil,
      let value = try? JSONDecoder().decode(JSONValue.self, from: Data(bytes))
    else { return nil }
    self = value
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
    switch self {
    case .null: "null"
    case .bool(let bool): bool ? "true" : "false"
    case .integer(let number): "\(number)"
    case .fraction(let number): "\(number)"
    case .text(let text): Self.quoted(text)
    case .list(let values): "[\(values.map(\.canonical).joined(separator: ","))]"
    case .object(let members):
      "{"
        + members.sorted { $0.key.utf16.lexicographicallyPrecedes($1.key.utf16) }
        .map { "\(Self.quoted($0.key)):\($0.value.canonical)" }.joined(separator: ",") + "}"
    }
  }

  private static func quoted(_ text: String) -> String {
    var quoted = "\""
    for scalar in text.unicodeScalars {
      switch scalar {
      case "\"": quoted += "\\\""
      case "\\": quoted += "\\\\"
      case "\u{08}": quoted += "\\b"
      case "\u{09}": quoted += "\\t"
      case "\u{0A}": quoted += "\\n"
      case "\u{0C}": quoted += "\\f"
      case "\u{0D}": quoted += "\\r"
      case "\u{00}"..<"\u{20}": quoted += (scalar.value < 16 ? "\\u000" : "\\u00") + String(scalar.value, radix: 16)
      default: quoted.unicodeScalars.append(scalar)
      }
    }
    return quoted + "\""
  }
}

extension JSONValue: Decodable {
  package init(from decoder: any Decoder) throws {
    let container = try decoder.singleValueContainer()
    if let text = try? container.decode(String.self) {
      self = .text(text)
    } else if let members = try? container.decode([String: JSONValue].self) {
      self = .object(members)
    } else if let values = try? container.decode([JSONValue].self) {
      self = .list(values)
    } else if let bool = try? container.decode(Bool.self) {
      self = .bool(bool)
    } else if container.decodeNil() {
      self = .null
    } else if let number = try? container.decode(Int64.self) {
      self = .integer(number)
    } else {
      self = .fraction(try container.decode(Double.self))
    }
  }
}

extension JSONValue: Encodable {
  package func encode(to encoder: any Encoder) throws {
    var container = encoder.singleValueContainer()
    switch self {
    case .null: try container.encodeNil()
    case .bool(let bool): try container.encode(bool)
    case .integer(let number): try container.encode(number)
    case .fraction(let number): try container.encode(number)
    case .text(let text): try container.encode(text)
    case .list(let values): try container.encode(values)
    case .object(let members): try container.encode(members)
    }
  }
}
