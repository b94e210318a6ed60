// SPDX-License-Identifier: Apache-2.0
import DisplayText
import Testing

@Suite(.timeLimit(.minutes(1))) struct CombiningMarksTests {
  @Test(
    "Text of languages has few combining marks",
    arguments: [
      "", "a", "é", "e\u{301}\u{323}", "שָׁלוֹם", "ཧྐྵྨླྺྼྻྂ", String(repeating: "e\u{301}\u{323}", count: 10_000),
      "a" + String(repeating: "\u{301}", count: 30) + "b" + String(repeating: "\u{301}", count: 30),
    ])
  func few(text: String) { #expect(!text.hasTooManyCombiningMarks) }

  @Test("Text with too many is detected at once", arguments: [0x300, 0x316, 0x345, 0xF73, 0xF75, 0xF81, 0x1D165])
  func many(mark: UInt32) throws {
    let mark = String(try #require(Unicode.Scalar(mark)))
    for text in [
      String(repeating: mark, count: 31), "a" + String(repeating: mark, count: 31) + "b",
      String(repeating: mark, count: 1_000_000),
    ] {
      #expect(text.hasTooManyCombiningMarks)
    }
  }
}
