/// Checks a configuration's text before the TOML library reads it: the library ends the process, instead of reporting an
/// error, for some texts that are not TOML. Taken is what configurations consist of (TOML 1.0 without floating-point
/// numbers, dates and times), nested at most 32 deep.
public enum TOMLSyntax {
  public static let deepest = 32

  public struct Flaw: Error, Equatable, Sendable, CustomStringConvertible {
    /// From 1.
    public let line: Int
    public let what: String

    public var description: String { "line \(line): \(what)" }
  }

  /// - Throws: the first flaw.
  public static func check(_ text: String) throws(Flaw) {
    var reader = TOMLReader(text)
    try reader.document()
  }
}

/// Tables, keys and values. Texts and numbers are in an extension.
struct TOMLReader {
  var rest: ArraySlice<UInt8>
  var line = 1

  init(_ text: String) { rest = Array(text.utf8)[...] }

  func flaw(_ what: String) -> TOMLSyntax.Flaw { TOMLSyntax.Flaw(line: line, what: what) }

  mutating func document() throws(TOMLSyntax.Flaw) {
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

  private mutating func header() throws(TOMLSyntax.Flaw) {
    rest.removeFirst()
    let isArray = take("[")
    skipBlanks()
    try key()
    skipBlanks()
    guard take(isArray ? "]]" : "]") else { throw flaw("the name of a table is not closed with a bracket") }
  }

  private mutating func keyAndValue(depth: Int) throws(TOMLSyntax.Flaw) {
    try key()
    skipBlanks()
    guard take("=") else { throw flaw("a key is not followed by \"=\"") }
    skipBlanks()
    try value(depth: depth)
  }

  /// One name, or several with dots between them.
  private mutating func key() throws(TOMLSyntax.Flaw) {
    repeat {
      skipBlanks()
      if let quote = rest.first, quote == UInt8(ascii: "\"") || quote == UInt8(ascii: "'") {
        try text(quote: quote, mayBeMultiline: false)
      } else {
        let name = rest.prefix(while: Self.isBare)
        guard !name.isEmpty else {
          throw flaw("a name consists of letters of ASCII, digits, \"_\" and \"-\", or is in quotes")
        }
        rest.removeFirst(name.count)
      }
      skipBlanks()
    } while take(".")
  }

  private mutating func value(depth: Int) throws(TOMLSyntax.Flaw) {
    switch rest.first {
    case let quote? where quote == UInt8(ascii: "\"") || quote == UInt8(ascii: "'"):
      try text(quote: quote, mayBeMultiline: true)
    case UInt8(ascii: "["): try array(depth: depth + 1)
    case UInt8(ascii: "{"): try inlineTable(depth: depth + 1)
    default:
      guard take("true") || take("false") || integer() else {
        throw flaw("a value is a text in quotes, a whole number, true, false, a list or a table")
      }
    }
  }

  private mutating func array(depth: Int) throws(TOMLSyntax.Flaw) {
    guard depth <= TOMLSyntax.deepest else { throw flaw("nested deeper than \(TOMLSyntax.deepest) levels") }
    rest.removeFirst()
    repeat {
      guard try skipSpaceAndLines() else { break }
      if take("]") { return }
      try value(depth: depth)
      _ = try skipSpaceAndLines()
    } while take(",")
    guard take("]") else { throw flaw("a list is not closed with a bracket") }
  }

  /// On one line, without a comma at its end.
  private mutating func inlineTable(depth: Int) throws(TOMLSyntax.Flaw) {
    guard depth <= TOMLSyntax.deepest else { throw flaw("nested deeper than \(TOMLSyntax.deepest) levels") }
    rest.removeFirst()
    skipBlanks()
    if take("}") { return }
    repeat {
      try keyAndValue(depth: depth)
      skipBlanks()
    } while take(",")
    guard take("}") else { throw flaw("a table is not closed with a brace") }
  }

  private mutating func endOfStatement() throws(TOMLSyntax.Flaw) {
    skipBlanks()
    try skipComment()
    guard rest.isEmpty || takeLineEnd() else { throw flaw("something stands behind what the line says") }
  }

  /// - Returns: whether anything comes after it.
  private mutating func skipSpaceAndLines() throws(TOMLSyntax.Flaw) -> Bool {
    repeat {
      skipBlanks()
      try skipComment()
    } while takeLineEnd()
    return !rest.isEmpty
  }

  private mutating func skipComment() throws(TOMLSyntax.Flaw) {
    guard rest.first == UInt8(ascii: "#") else { return }
    while let byte = rest.first, byte != UInt8(ascii: "\n"), !rest.starts(with: "\r\n".utf8) {
      guard !Self.isControl(byte) else { throw flaw("a control character in a comment") }
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
