// SPDX-License-Identifier: Apache-2.0
/// Reads configurations: the subset of TOML 1.0 that they need, without floating-point numbers, dates and times. The
/// text is checked before the library toml++ parses it: for some invalid texts the library ends the process instead of
/// reporting an error, and its memory and stack must be bounded.
package enum TOMLSyntax {
  /// The maximum size of a text in bytes.
  package static let largest = 1 << 18
  /// The maximum number of keys, the names of tables included.
  package static let mostKeys = 4096
  /// The maximum number of tables and arrays that are inside of each other. An array of tables counts once.
  package static let deepest = 32

  package struct ParseError: Error, Equatable, Sendable, CustomStringConvertible {
    /// The line number, from 1.
    package let line: Int
    /// The number of the character in its line, from 1.
    package let column: Int
    package let what: String

    package var description: String { "line \(line), column \(column): \(what)" }
  }

  /// - Throws: the first error.
  static func check(_ text: String) throws(ParseError) {
    guard text.utf8.count <= largest else {
      throw ParseError(line: 1, column: 1, what: "the text has more than \(largest) bytes")
    }
    var reader = TOMLReader(text)
    try reader.document()
  }
}

/// Checks tables, keys and values. Strings and numbers are in an extension.
struct TOMLReader {
  var rest: ArraySlice<UInt8>
  private let bytes: [UInt8]
  private var line = 1
  private var startOfLine = 0
  private var keys = 0
  /// The depth of the table that the last header named.
  private var depth = 0

  init(_ text: String) {
    bytes = Array(text.utf8)
    rest = bytes[...]
  }

  func parseError(_ what: String) -> TOMLSyntax.ParseError {
    // A character begins with a byte that is not 10xxxxxx.
    let before = bytes[startOfLine..<rest.startIndex].count(where: { $0 & 0xC0 != 0x80 })
    return TOMLSyntax.ParseError(line: line, column: before + 1, what: what)
  }

  mutating func document() throws(TOMLSyntax.ParseError) {
    _ = take("\u{FEFF}")
    while try skipSpaceAndLines() {
      if rest.first == UInt8(ascii: "[") {
        try header()
      } else {
        try keyAndValue(depth: depth)
      }
      try endOfStatement()
    }
  }

  private mutating func header() throws(TOMLSyntax.ParseError) {
    rest.removeFirst()
    let isArray = take("[")
    skipBlanks()
    depth = try key(depth: 1)
    skipBlanks()
    guard take(isArray ? "]]" : "]") else { throw parseError("the name of a table has no closing bracket") }
  }

  private mutating func keyAndValue(depth: Int) throws(TOMLSyntax.ParseError) {
    let depth = try key(depth: depth)
    skipBlanks()
    guard take("=") else { throw parseError("a key is not followed by \"=\"") }
    skipBlanks()
    try value(depth: depth)
  }

  /// One name, or several separated by dots, each of them a level deeper.
  /// - Parameter depth: of the first name.
  /// - Returns: the depth of the last name.
  private mutating func key(depth: Int) throws(TOMLSyntax.ParseError) -> Int {
    var depth = depth - 1
    repeat {
      (depth, keys) = (depth + 1, keys + 1)
      try checkDepth(depth)
      guard keys <= TOMLSyntax.mostKeys else { throw parseError("more than \(TOMLSyntax.mostKeys) keys") }
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
    return depth
  }

  private func checkDepth(_ depth: Int) throws(TOMLSyntax.ParseError) {
    guard depth <= TOMLSyntax.deepest else { throw parseError("nested deeper than \(TOMLSyntax.deepest) levels") }
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
    try checkDepth(depth)
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
    try checkDepth(depth)
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
    startOfLine = rest.startIndex
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
