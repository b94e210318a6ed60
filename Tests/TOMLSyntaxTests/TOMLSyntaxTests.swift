// SPDX-License-Identifier: Apache-2.0
import TOMLSyntax
import Testing

private let wellFormed = [
  "", "\u{FEFF}[a]", "[a]\n[[b]]\n[ c.\"d e\" ]\n[[ 'f' ]]\r\n# [!", "a = [\n  [1],\n  [ [] ],\n [+1], # [!\n]\n[b]",
  "a = \"\"\"\n[!\n\\\"\"\"\n[?\"\"\"\"\"\n[b]", "a = '''\n[!'''''\n[b]", "a = \"[\\\"!\" # \"\"\"\n[b]",
  "a = { b = [1, 2], c = {} }\r\n[-d]", "a = '\\'\n\"b\".'c' . d=-1_000", "a = \"\"\"x \\  \n  y\"\"\"",
  "a = \"\"\"\"\"\"",
  "a = \"\\u00fc\\U0001F600\\b\\t\"", "a = 0xFF_FF\nb = 0o7\nc = 0b1\nd = +0\ne = true # x\n", "a.b = 1\n\ta.c = false",
]

private let malformed = [
  // For these texts the library ends the process.
  ("[!", 1), ("[[=]]", 1), ("[\u{FC}nit]", 1), ("[ #]", 1), ("[\n]", 1), ("[[[a]]]", 1), ("a = 1\n\n  [.b]", 3),
  ("a = [\n[1]\n]\n[\u{0}]", 4), ("a = \"\"\"\n\n\"\"\"\n[,]", 4), ("[a]\r\n[[{", 2), ("a =1979-05-27 1", 1),
  // For these texts the library reports an error.
  ("[[ \t]", 1), ("[a", 1), ("[[a]", 1), ("a", 1), ("a =", 1), ("a = 1.5", 1), ("a = 1979-05-27", 1), ("a = 1_", 1),
  ("a = 0x", 1), ("a = nan", 1), ("a = 1 b = 2", 1), ("a = \"\\x\"", 1), ("a = \"\\ud800\"", 1), ("a = \"\\u+00f\"", 1),
  ("a = 'b\nc'", 1), ("a = [1", 1), ("a = [1 2]", 1), ("a = {b = 1,}", 1), ("a = \"\"\"\n\"\"", 2),
  ("a = \"\"\"\\ x\"\"\"", 1),
  ("# \u{7}", 1), ("\n\u{FC} = 1", 2), ("a = \"\u{1}\"", 1), ("a = \r", 1),
  ("a = " + String(repeating: "[", count: 33), 1), ("a = " + String(repeating: "{a=", count: 33), 1),
]

/// For these texts the check finds no error, but the library does. Its columns differ between versions.
private let contradictory = [
  ("a = 1\n  a = 2", 2, "'a'"), ("a.b = 1\na = 2", 2, "'a'"), ("[a]\n[a]", 2, "'a'"),
  ("a = { b = 1, b = 2 }", 1, "'b'"), ("[[a]]\n[a]", 2, "'a'"), ("a = []\n[[a]]", 2, "'a'"),
  ("[a]\nb = 1\n[a.b]", 3, "'a.b'"), ("\"a\" = 1\na = 2", 2, "'a'"), ("a = 9223372036854775808", 1, "64 bits"),
]

@Suite(.timeLimit(.minutes(5))) struct TOMLSyntaxTests {
  @Test("A well-formed text passes, with any contents of its strings and lists", arguments: wellFormed)
  func wellFormedPasses(text: String) throws { _ = try TOMLSyntax.parse(text) }

  @Test("A malformed text is rejected, with its line number", arguments: malformed)
  func malformedIsRefused(text: String, line: Int) {
    #expect(refusal(text)?.line == line)
  }

  @Test("A duplicate key or a number beyond 64 bits is rejected, with its line", arguments: contradictory)
  func contradictoryIsRefused(text: String, line: Int, what: String) throws {
    let error = try #require(refusal(text))
    #expect(error.line == line && error.column >= 1 && error.what.contains(what), "\(error)")
  }

  @Test(
    "An error names the column, which counts characters",
    arguments: [("a = ?", 1, 5), ("a = 1\r\n  \u{FC} = 1", 2, 3), ("a = '\u{FC}\u{1F600}' !", 1, 10), ("\n\n[a", 3, 3)])
  func errorNamesTheColumn(text: String, line: Int, column: Int) throws {
    let error = try #require(refusal(text))
    #expect(error.line == line && error.column == column, "\(error)")
    #expect("\(error)".hasPrefix("line \(line), column \(column): "))
  }

  @Test("Values keep their types and contents") func valuesKeepTheirTypesAndContents() throws {
    let text = """
      a = "\\u00fc\\n"
      b = [-1, 0x10, 9223372036854775807, true]
      c.d = { e = [] }
      [[f]]
      g = false
      [[f]]
      """
    #expect(
      try TOMLSyntax.parse(text) == [
        "a": .string("\u{FC}\n"),
        "b": .array([.integer(-1), .integer(16), .integer(.max), .boolean(true)]),
        "c": .table(["d": .table(["e": .array([])])]),
        "f": .array([.table(["g": .boolean(false)]), .table([:])]),
      ])
  }

  @Test("A text within the bounds is parsed, and one beyond a bound is rejected")
  func boundsAreExact() {
    func repeated(_ text: String, _ count: Int) -> String { String(repeating: text, count: count) }
    #expect(refusal("#" + repeated("x", TOMLSyntax.largest - 1)) == nil)
    #expect(refusal("#" + repeated("x", TOMLSyntax.largest))?.what.contains("bytes") == true)
    func keys(_ count: Int) -> String { (0..<count).map { "k\($0) = 0\n" }.joined() }
    #expect(refusal(keys(TOMLSyntax.mostKeys)) == nil)
    #expect(refusal(keys(TOMLSyntax.mostKeys + 1))?.what.contains("keys") == true)
    let deep = TOMLSyntax.deepest
    #expect(refusal("a = " + repeated("[", deep) + repeated("]", deep)) == nil)
    // Each of these has one level too many. Without a bound, a chain of tables would overflow the library's stack.
    for text in [
      "a = " + repeated("[", deep + 1) + repeated("]", deep + 1),
      repeated("a.", deep + 1) + "a = 1", "[" + repeated("a.", deep) + "a]",
      "[a]\n" + repeated("a.", deep) + "a = 1", "a = {" + repeated("a.", deep) + "a = 1}",
    ] {
      #expect(refusal(text)?.what.contains("deeper") == true, "\(text)")
    }
    #expect(refusal("[" + repeated("a.", deep - 1) + "a]") == nil)
  }

  private func refusal(_ text: String) -> TOMLSyntax.ParseError? {
    do throws(TOMLSyntax.ParseError) {
      _ = try TOMLSyntax.parse(text)
      return nil
    } catch { return error }
  }
}
