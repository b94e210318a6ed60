// SPDX-License-Identifier: Apache-2.0
import TOMLKit
import TOMLSyntax
import Testing

/// The library accepts these texts, so the check must accept them, too.
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

@Suite(.timeLimit(.minutes(5))) struct TOMLSyntaxTests {
  @Test("A well-formed text passes, with any contents of its strings and lists", arguments: wellFormed)
  func wellFormedPasses(text: String) throws {
    _ = try TOMLTable(string: text)
    try TOMLSyntax.check(text)
  }

  @Test("A malformed text is rejected, with its line number", arguments: malformed)
  func malformedIsRefused(text: String, line: Int) {
    var found = 0
    do throws(TOMLSyntax.ParseError) { try TOMLSyntax.check(text) } catch { found = error.line }
    #expect(found == line)
  }
}
