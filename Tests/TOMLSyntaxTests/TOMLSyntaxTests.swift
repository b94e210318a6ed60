import TOMLKit
import TOMLSyntax
import Testing

/// The library reads these, so the check must let them through.
private let wellFormed = [
  "", "\u{FEFF}[a]", "[a]\n[[b]]\n[ c.\"d e\" ]\n[[ 'f' ]]", "a = [\n  [1],\n  [ [] ],\n [+1], # [!\n]\n[b]",
  "a = \"\"\"\n[!\n\\\"\"\"\n[?\"\"\"\"\"\n[b]", "a = '''\n[!'''''\n[b]", "a = \"[\\\"!\" # \"\"\"\n[b]",
  "a = { b = [1, 2], c = {} }\r\n[-d]", "# [!\n[_e]", "a = '\\'\n[b]",
]

@Suite struct TOMLSyntaxTests {
  @Test("A well-formed text passes, whatever stands in its strings and lists", arguments: wellFormed)
  func wellFormedPasses(text: String) throws {
    _ = try TOMLTable(string: text)
    try TOMLSyntax.check(text)
  }

  /// Without the check, the library ends the process.
  @Test(
    "A table header that begins with no key is refused, with its line",
    arguments: [
      ("[!", 1), ("[[=]]", 1), ("[\u{FC}nit]", 1), ("[ #]", 1), ("[\n]", 1), ("[[[a]]]", 1), ("[[ \t]", 0),
      ("a = 1\n\n  [.b]", 3), ("a = [\n[1]\n]\n[\u{0}]", 4), ("a = \"\"\"\n\n\"\"\"\n[,]", 4), ("[a]\r\n[[{", 2),
    ])
  func strayHeader(text: String, line: Int) {
    var found = 0
    do throws(TOMLSyntax.Flaw) { try TOMLSyntax.check(text) } catch { found = error.line }
    #expect(found == line)
  }
}
