// SPDX-License-Identifier: Apache-2.0
extension TOMLReader {
  /// Reads a basic or a literal string, depending on `quote`; a multi-line one if it begins with three quotes.
  mutating func text(quote: UInt8, mayBeMultiline: Bool) throws(TOMLSyntax.ParseError) {
    let isMultiline = mayBeMultiline && rest.prefix(3).elementsEqual([quote, quote, quote])
    rest.removeFirst(isMultiline ? 3 : 1)
    while let byte = rest.first {
      if byte == quote {
        if !isMultiline {
          rest.removeFirst()
          return
        }
        // Up to two quotes before the closing three belong to the string.
        let quotes = rest.prefix(5).prefix { $0 == quote }.count
        rest.removeFirst(quotes)
        if quotes >= 3 { return }
      } else if byte == UInt8(ascii: "\\"), quote == UInt8(ascii: "\"") {
        try escape(isMultiline: isMultiline)
      } else if !isMultiline || !takeLineEnd() {
        guard !Self.isControl(byte) else { throw parseError("a line end or a control character in a string") }
        rest.removeFirst()
      }
    }
    throw parseError("a string has no closing quote")
  }

  private mutating func escape(isMultiline: Bool) throws(TOMLSyntax.ParseError) {
    rest.removeFirst()
    if isMultiline, let blank = rest.first, " \t\r\n".utf8.contains(blank) {
      skipBlanks()
      guard takeLineEnd() else { throw parseError("blanks after a backslash, but no line end") }
      return
    }
    switch rest.popFirst() {
    case let letter? where "btnfr\"\\".utf8.contains(letter): return
    case UInt8(ascii: "u"): try codePoint(digits: 4)
    case UInt8(ascii: "U"): try codePoint(digits: 8)
    default: throw parseError("an unknown escape sequence")
    }
  }

  private mutating func codePoint(digits: Int) throws(TOMLSyntax.ParseError) {
    let number = UInt32(String(decoding: rest.prefix(digits), as: UTF8.self), radix: 16)
    guard rest.prefix(digits).allSatisfy(Self.isHexDigit), rest.count >= digits, let number,
      Unicode.Scalar(number) != nil
    else { throw parseError("an escape sequence that is not a character") }
    rest.removeFirst(digits)
  }

  /// Decimal with an optional sign, or hexadecimal, octal or binary without a sign; underscores between digits.
  mutating func integer() -> Bool {
    for (prefix, radix) in [("0x", 16), ("0o", 8), ("0b", 2)] where take(prefix) { return digits(radix: radix) }
    if !take("+") { _ = take("-") }
    return take("0") || digits(radix: 10)
  }

  private mutating func digits(radix: Int) -> Bool {
    repeat {
      let run = rest.prefix { Self.value(ofDigit: $0).map { $0 < radix } ?? false }
      guard !run.isEmpty else { return false }
      rest.removeFirst(run.count)
    } while take("_")
    return true
  }

  private static func isHexDigit(_ byte: UInt8) -> Bool { value(ofDigit: byte) != nil }

  private static func value(ofDigit byte: UInt8) -> Int? {
    Character(Unicode.Scalar(byte)).hexDigitValue
  }
}
