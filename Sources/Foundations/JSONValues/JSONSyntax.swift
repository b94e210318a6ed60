// SPDX-License-Identifier: Apache-2.0
import DisplayText
import Threads

/// Parses one JSON text (RFC 8259): UTF-8, unique member names in each object, at most 32 levels. If a reader and a
/// signer chose different ones of two equal members, they would disagree about the signed content.
package struct JSONSyntax {
  /// The maximum number of nested objects and arrays.
  package static let deepest = 32
  /// The maximum number of values, whose memory is up to 32 times that of their text.
  package static let mostValues = 100_000

  package enum ParseError: Error, Equatable, Sendable, CustomStringConvertible {
    case notJSON, tooDeep, tooManyValues, tooManyMarks
    /// The name, truncated to 64 characters.
    case repeated(String)
    case number

    package var description: String {
      switch self {
      case .notJSON: "not JSON"
      case .tooDeep: "nested deeper than \(JSONSyntax.deepest) levels"
      case .tooManyValues: "more than \(JSONSyntax.mostValues) values"
      case .tooManyMarks: "a character of a text has more than 30 combining marks"
      case .repeated(let name): "\"\(name)\" is there twice"
      case .number: "a number is out of range"
      }
    }
  }

  /// - Parameters:
  ///   - numbers: the range of permitted numbers, which must then be integers; nil for any number that a `Double` can
  ///     hold.
  ///   - levels: the maximum number of nested objects and arrays.
  /// - Throws: the first error.
  package static func parse(_ bytes: [UInt8], numbers: ClosedRange<Int64>? = nil, levels: Int = deepest)
    throws(ParseError) -> JSONValue
  {
    // What follows takes longer than some milliseconds on a small board.
    if bytes.count > 16 << 10 { threadWillBlock() }
    guard String(validating: bytes, as: UTF8.self) != nil else { throw .notJSON }
    var syntax = JSONSyntax(bytes: bytes, numbers: numbers, levels: levels)
    let value = try syntax.value(atDepth: 0)
    syntax.skipSpace()
    guard syntax.next == nil else { throw .notJSON }
    return value
  }

  private let bytes: [UInt8]
  private let numbers: ClosedRange<Int64>?
  private let levels: Int
  private var position = 0
  private var values = 0

  private init(bytes: [UInt8], numbers: ClosedRange<Int64>?, levels: Int) {
    self.bytes = bytes
    self.numbers = numbers
    self.levels = levels
  }

  private var next: UInt8? { position < bytes.count ? bytes[position] : nil }

  private mutating func skipSpace() {
    while let byte = next, byte == 0x20 || byte == 0x0A || byte == 0x0D || byte == 0x09 { position += 1 }
  }

  private mutating func take(_ byte: Unicode.Scalar) -> Bool {
    guard next == UInt8(ascii: byte) else { return false }
    position += 1
    return true
  }

  private mutating func value(atDepth depth: Int) throws(ParseError) -> JSONValue {
    values += 1
    guard values <= Self.mostValues else { throw .tooManyValues }
    skipSpace()
    switch next {
    case UInt8(ascii: "{"): return .object(try members(atDepth: depth + 1))
    case UInt8(ascii: "["): return .list(try elements(atDepth: depth + 1))
    case UInt8(ascii: "\""): return .text(try text())
    case UInt8(ascii: "t"): return try word("true", .bool(true))
    case UInt8(ascii: "f"): return try word("false", .bool(false))
    case UInt8(ascii: "n"): return try word("null", .null)
    default: return try number()
    }
  }

  private mutating func members(atDepth depth: Int) throws(ParseError) -> [String: JSONValue] {
    guard depth <= levels else { throw .tooDeep }
    position += 1
    skipSpace()
    var members: [String: JSONValue] = [:]
    if take("}") { return members }
    repeat {
      skipSpace()
      let name = try text()
      guard members[name] == nil else { throw .repeated(String(name.prefix(64))) }
      skipSpace()
      guard take(":") else { throw .notJSON }
      members[name] = try value(atDepth: depth)
      skipSpace()
    } while take(",")
    guard take("}") else { throw .notJSON }
    return members
  }

  private mutating func elements(atDepth depth: Int) throws(ParseError) -> [JSONValue] {
    guard depth <= levels else { throw .tooDeep }
    position += 1
    skipSpace()
    var elements: [JSONValue] = []
    if take("]") { return elements }
    repeat {
      elements.append(try value(atDepth: depth))
      skipSpace()
    } while take(",")
    guard take("]") else { throw .notJSON }
    return elements
  }

  private mutating func word(_ word: String, _ value: JSONValue) throws(ParseError) -> JSONValue {
    guard bytes[position...].starts(with: word.utf8) else { throw .notJSON }
    position += word.utf8.count
    return value
  }
}

// MARK: Strings and numbers

extension JSONSyntax {
  /// Skips a string of printable ASCII without escapes, such as Base64, whose bytes are its text.
  /// - Returns: false, without effect, if there is none.
  private mutating func skipPlainText() -> Bool {
    guard next == UInt8(ascii: "\"") else { return false }
    var end = position + 1
    while end < bytes.count {
      switch bytes[end] {
      case UInt8(ascii: "\""):
        position = end + 1
        return true
      case UInt8(ascii: "\\"), 0..<0x20, 0x7F...: return false
      default: end += 1
      }
    }
    return false
  }

  /// The decoded string, so that different escapes of the same name compare as equal.
  private mutating func text() throws(ParseError) -> String {
    let start = position + 1
    if skipPlainText() { return String(decoding: bytes[start..<(position - 1)], as: UTF8.self) }
    guard take("\"") else { throw .notJSON }
    var text: [UInt8] = []
    while let byte = next {
      switch byte {
      case UInt8(ascii: "\""):
        position += 1
        let text = String(decoding: text, as: UTF8.self)
        guard !text.hasTooManyCombiningMarks else { throw .tooManyMarks }
        return text
      case UInt8(ascii: "\\"): text += String(decoding: try escapes(), as: UTF16.self).utf8
      case 0..<0x20: throw .notJSON
      default:
        text.append(byte)
        position += 1
      }
    }
    throw .notJSON
  }

  /// Decodes a run of escapes, because surrogates come in pairs. An unpaired surrogate is rejected: it is not a
  /// character.
  private mutating func escapes() throws(ParseError) -> [UInt16] {
    var units: [UInt16] = []
    while take("\\") {
      guard let byte = next else { throw .notJSON }
      position += 1
      switch byte {
      case UInt8(ascii: "\""), UInt8(ascii: "\\"), UInt8(ascii: "/"): units.append(UInt16(byte))
      case UInt8(ascii: "b"): units.append(0x08)
      case UInt8(ascii: "f"): units.append(0x0C)
      case UInt8(ascii: "n"): units.append(0x0A)
      case UInt8(ascii: "r"): units.append(0x0D)
      case UInt8(ascii: "t"): units.append(0x09)
      case UInt8(ascii: "u"): units.append(try codeUnit())
      default: throw .notJSON
      }
    }
    guard String(validating: units, as: UTF16.self) != nil else { throw .notJSON }
    return units
  }

  private mutating func codeUnit() throws(ParseError) -> UInt16 {
    var unit: UInt16 = 0
    for _ in 0..<4 {
      guard let byte = next, let digit = Self.hexDigit(byte) else { throw .notJSON }
      unit = unit << 4 | digit
      position += 1
    }
    return unit
  }

  private static func hexDigit(_ byte: UInt8) -> UInt16? {
    switch byte {
    case UInt8(ascii: "0")...UInt8(ascii: "9"): UInt16(byte - UInt8(ascii: "0"))
    case UInt8(ascii: "a")...UInt8(ascii: "f"): UInt16(byte - UInt8(ascii: "a") + 10)
    case UInt8(ascii: "A")...UInt8(ascii: "F"): UInt16(byte - UInt8(ascii: "A") + 10)
    default: nil
    }
  }

  private mutating func number() throws(ParseError) -> JSONValue {
    let start = position
    _ = take("-")
    // A leading zero must be the whole integer part.
    guard take("0") || digits() > 0 else { throw .notJSON }
    var isWhole = true
    if take(".") {
      isWhole = false
      guard digits() > 0 else { throw .notJSON }
    }
    if take("e") || take("E") {
      isWhole = false
      if !take("+") { _ = take("-") }
      guard digits() > 0 else { throw .notJSON }
    }
    let text = String(decoding: bytes[start..<position], as: UTF8.self)
    if isWhole, let number = Int64(text) {
      guard numbers?.contains(number) ?? true else { throw .number }
      return .integer(number)
    }
    // Rounded to a `Double`, as in RFC 8785, also if it is whole then.
    guard numbers == nil, let number = Double(text), let value = JSONValue(number) else { throw .number }
    return value
  }

  /// - Returns: the number of digits.
  private mutating func digits() -> Int {
    let start = position
    while let byte = next, (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) { position += 1 }
    return position - start
  }
}
