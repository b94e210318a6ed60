/// Checks a TOML text (TOML 1.0) before the library reads it: the library ends the process, instead of reporting an
/// error, where a table header has something else than a key. All else is left to the library.
public enum TOMLSyntax {
  public struct Flaw: Error, Equatable, Sendable, CustomStringConvertible {
    /// From 1.
    public let line: Int

    public var description: String {
      "line \(line): the name of a table begins with a letter of ASCII, a digit, \"_\" or \"-\", or is in quotes"
    }
  }

  /// - Throws: the first flaw.
  public static func check(_ text: String) throws(Flaw) {
    var scanner = Scanner(rest: Array(text.utf8)[...])
    while scanner.rest.first != nil { try scanner.statement() }
  }
}

/// Follows strings, comments and brackets as far as is needed to know where a statement begins. After the first error in
/// the text it may be wrong, but there the library stops, too.
private struct Scanner {
  var rest: ArraySlice<UInt8>
  private var line = 1

  init(rest: ArraySlice<UInt8>) {
    self.rest = rest
    _ = take("\u{FEFF}")
  }

  /// A table header, or anything else, and the end of its last line.
  mutating func statement() throws(TOMLSyntax.Flaw) {
    skipBlanks()
    let isHeader = rest.first == UInt8(ascii: "[")
    if isHeader { try header() }
    var depth = 0
    while let byte = rest.first {
      switch byte {
      case UInt8(ascii: "\n"):
        endLine()
        if depth <= 0 { return }
      case UInt8(ascii: "#"): rest = rest.drop { $0 != UInt8(ascii: "\n") }
      case UInt8(ascii: "\""), UInt8(ascii: "'"): skipString(quote: byte)
      default:
        if !isHeader { depth += nesting(byte) }
        rest.removeFirst()
      }
    }
  }

  private mutating func header() throws(TOMLSyntax.Flaw) {
    rest.removeFirst()
    _ = take("[")
    skipBlanks()
    guard let byte = rest.first else { return }
    guard isKeyStart(byte) || byte == UInt8(ascii: "]") else { throw TOMLSyntax.Flaw(line: line) }
  }

  private mutating func skipString(quote: UInt8) {
    let isMultiline = rest.prefix(3).elementsEqual([quote, quote, quote])
    rest.removeFirst(isMultiline ? 3 : 1)
    while let byte = rest.first {
      if byte == UInt8(ascii: "\\"), quote == UInt8(ascii: "\"") {
        rest.removeFirst()
        if rest.first == UInt8(ascii: "\n") { endLine() } else { _ = rest.popFirst() }
      } else if byte == UInt8(ascii: "\n") {
        guard isMultiline else { return }
        endLine()
      } else if byte == quote, !isMultiline {
        rest.removeFirst()
        return
      } else if byte == quote, rest.prefix(3).elementsEqual([quote, quote, quote]) {
        // Up to two more are the string's own last characters.
        rest.removeFirst(min(5, rest.prefix { $0 == quote }.count))
        return
      } else {
        rest.removeFirst()
      }
    }
  }

  private mutating func endLine() {
    rest.removeFirst()
    line += 1
  }

  private mutating func skipBlanks() { rest = rest.drop { $0 == UInt8(ascii: " ") || $0 == UInt8(ascii: "\t") } }

  private mutating func take(_ text: String) -> Bool {
    guard rest.starts(with: text.utf8) else { return false }
    rest.removeFirst(text.utf8.count)
    return true
  }

  private func nesting(_ byte: UInt8) -> Int {
    switch byte {
    case UInt8(ascii: "["), UInt8(ascii: "{"): 1
    case UInt8(ascii: "]"), UInt8(ascii: "}"): -1
    default: 0
    }
  }

  private func isKeyStart(_ byte: UInt8) -> Bool {
    switch byte {
    case UInt8(ascii: "A")...UInt8(ascii: "Z"), UInt8(ascii: "a")...UInt8(ascii: "z"),
      UInt8(ascii: "0")...UInt8(ascii: "9"):
      true
    default: "_-\"'".utf8.contains(byte)
    }
  }
}
