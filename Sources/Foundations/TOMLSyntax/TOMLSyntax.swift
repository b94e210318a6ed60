// SPDX-License-Identifier: Apache-2.0
/// Checks a configuration's text before the TOML library reads it: for some invalid texts the library ends the process
/// instead of reporting an error. Accepts the subset of TOML 1.0 that configurations need: no floating-point numbers,
/// dates or times, and at most 32 levels of nesting.
public enum TOMLSyntax {
  public static let deepest = 32

  public struct ParseError: Error, Equatable, Sendable, CustomStringConvertible {
    /// The line number, from 1.
    public let line: Int
    public let what: String

    public var description: String { "line \(line): \(what)" }
  }

  /// - Throws: the first error.
  public static func check(_ text: String) throws(ParseError) {
    var reader = TOMLReader(text)
    try reader.document()
  }
}

/// Parses tables, keys and values. Strings and numbers are in an extension.
struct TOMLReader {
  var rest: ArraySlice<UInt8>
  var line = 1

  init(_ text: String) { rest = Array(text.utf8)[...] }

  func parseError(_ what: String) -> TOMLSyntax.ParseError { TOMLSyntax.ParseError(line: line, what: what) }

  mutating func document() throws(TOMLSyntax.ParseError) {
    _ = take("\u{FEFF}")
    while try skipSpaceAndLines() {
      if rest.first == UInt8(ascii: "[") {
        try header()
      } else {
        try keyAndValue(depth: 0)
      }
      try endOfStatement()
    }
  }

  private mutating func header() throws(TOMLSyntax.ParseError) {
    rest.removeFirst()
    let isArray = take("[")
    skipBlanks()
    try key()
    skipBlanks()
    guard take(isArray ? "]]" : "]") else { throw parseError("the name of a table has no closing bracket") }
  }

  private mutating func keyAndValue(depth: Int) throws(TOMLSyntax.ParseError) {
    try key()
    skipBlanks()
    guard take("=") else { throw parseError("a key is not followed by \"=\"") }
    skipBlanks()
    try value(depth: depth)
  }

  /// One name, or several separated by dots.
  private mutating func key() throws(TOMLSyntax.ParseError) {
    repeat {
      skipBlanks()
      if let quote = rest.first, quote == UInt8(ascii: "\"") || quote == UInt8(ascii: "'") {
        try text(quote: quote, mayBeMultiline: false)
      } else {
        let name = rest.prefix(while: Self.isBare)
        guard !name.isEmpty else {
          throw parseError("a name consists of ASCII letters, digits, \"_\" and \"-\", or is in quotes")
        }
        rest.removeFirst(name.count)
      }
      skipBlanks()
    } while take(".")
  }

  private mutating func value(depth: Int) throws(TOMLSyntax.ParseError) {
    switch rest.first {
    case let quote? where quote == UInt8(ascii: "\"") || quote == UInt8(ascii: "'"):
      try text(quote: quote, mayBeMultiline: true)
    case UInt8(ascii: "["): try array(depth: depth + 1)
    case UInt8(ascii: "{"): try inlineTable(depth: depth + 1)
    default:
      guard take("true") || take("false") || integer() else {
        throw parseError("a value is a string in quotes, a whole number, true, false, a list or a table")
      }
    }
  }

  private mutating func array(depth: Int) throws(TOMLSyntax.ParseError) {
    guard depth <= TOMLSyntax.deepest else { throw parseError("nested deeper than \(TOMLSyntax.deepest) levels") }
    rest.removeFirst()
    repeat {
      guard try skipSpaceAndLines() else { break }
      if take("]") { return }
      try value(depth: depth)
      _ = try skipSpaceAndLines()
    } while take(",")
    guard take("]") else { throw parseError("a list has no closing bracket") }
  }

  /// A table on one line, without a trailing comma.
  private mutating func inlineTable(depth: Int) throws(TOMLSyntax.ParseError) {
    guard depth <= TOMLSyntax.deepest else { throw parseError("nested deeper than \(TOMLSyntax.deepest) levels") }
    rest.removeFirst()
    skipBlanks()
    if take("}") { return }
    repeat {
      try keyAndValue(depth: depth)
      skipBlanks()
    } while take(",")
    guard take("}") else { throw parseError("a table has no closing brace") }
  }

  private mutating func endOfStatement() throws(TOMLSyntax.ParseError) {
    skipBlanks()
    try skipComment()
    guard rest.isEmpty || takeLineEnd() else { throw parseError("unexpected text at the end of the line") }
  }

  /// - Returns: whether more text follows.
  private mutating func skipSpaceAndLines() throws(TOMLSyntax.ParseError) -> Bool {
    repeat {
      skipBlanks()
      try skipComment()
    } while takeLineEnd()
    return !rest.isEmpty
  }

  private mutating func skipComment() throws(TOMLSyntax.ParseError) {
    guard rest.first == UInt8(ascii: "#") else { return }
    while let byte = rest.first, byte != UInt8(ascii: "\n"), !rest.starts(with: "\r\n".utf8) {
      guard !Self.isControl(byte) else { throw parseError("a control character in a comment") }
      rest.removeFirst()
    }
  }

  mutating func skipBlanks() { rest = rest.drop { $0 == UInt8(ascii: " ") || $0 == UInt8(ascii: "\t") } }

  mutating func takeLineEnd() -> Bool {
    guard take("\n") || take("\r\n") else { return false }
    line += 1
    return true
  }

  mutating func take(_ text: String) -> Bool {
    guard rest.starts(with: text.utf8) else { return false }
    rest.removeFirst(text.utf8.count)
    return true
  }

  static func isControl(_ byte: UInt8) -> Bool { byte < 0x20 && byte != UInt8(ascii: "\t") || byte == 0x7F }

  private static func isBare(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "a")...UInt8(ascii: "z"),
      UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "_"), UInt8(ascii: "-"):
      true
    default: false
    }
  }
}
