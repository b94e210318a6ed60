// SPDX-License-Identifier: Apache-2.0
import DisplayText
import Testing

@Suite(.timeLimit(.minutes(5))) struct SanitizedTextTests {
  @Test(
    "What is not all there says so",
    arguments: [
      ("", ""), ("abcd", "abcd"), ("abcde", "abc…"), ("a\u{202E}b\ncd", "abcd"),
      ("e\u{301}\u{301}ab", "e\u{301}\u{301}…"),
    ])
  func whatIsNotAllThereSaysSo(text: String, shown: String) {
    #expect(text.sanitized(atMost: 4).unicodeScalars.elementsEqual(shown.unicodeScalars))
  }

  @Test("Line breaks are kept, and other control characters are removed")
  func linesAreKept() {
    #expect("a\r\u{1B}[2Jb\nc\u{202E}d\u{85}".sanitizedLines == "a\u{FFFD}\u{FFFD}[2Jb\nc\u{FFFD}d\u{FFFD}")
  }

  @Test(
    "A text with lines is shortened like other texts",
    arguments: [("a\r\nb", "a\nb"), ("a\u{1B}\n\u{85}b", "a\nb"), ("\n\n\n\n\n", "\n\n\n…"), ("ab\u{2028}", "ab")])
  func textWithLines(text: String, shown: String) { #expect(text.sanitizedText(atMost: 4) == shown) }

  @Test("JSON keeps its texts with control and format characters escaped")
  func jsonIsEscaped() {
    #expect(#"{"a":"x\#u{202E}\#u{9B}y"}"#.escapedForDisplay == #"{"a":"x\u202e\u009by"}"#)
    #expect(#"{"a":"ä"}"#.escapedForDisplay == #"{"a":"ä"}"#)
  }

  @Test("A very long text is read only up to a bound")
  func longTextIsBounded() {
    #expect(String(repeating: "\u{7}", count: 3_000_000).sanitized.isEmpty)
    #expect(String(repeating: "a", count: 3_000_000).sanitized.unicodeScalars.count == 200)
  }

  @Test(
    "Text from outside cannot start a line or move the terminal's cursor",
    arguments: [
      "a\nb", "a\rb", "\u{1B}[2J", "\u{9B}2J", "\u{202E}abc", "\u{2028}", "\u{200B}", "\0", "\u{E000}",
      "a\u{3164}b", "a\u{34F}b", "a\u{115F}b", "a\u{E0100}b", "\u{180B}",
    ])
  func unsafe(text: String) {
    #expect(!text.isSafeToShow)
    #expect(text.sanitized.isSafeToShow)
    #expect(!text.isSafeName && text.sanitizedName.isSafeName)
  }

  @Test("Text of any script stays unchanged", arguments: ["", "Büro 1, Gerät Nr. 7", "日本語 🔑", "한국어", "jose\u{301}"])
  func safe(text: String) {
    #expect(text.isSafeToShow && text.sanitized == text)
    #expect(text.isSafeName && text.sanitizedName == text)
  }

  @Test(
    "Emoji with selectors and Braille are shown, and are in no new name",
    arguments: ["\u{2764}\u{FE0F}", "\u{2764}\u{FE0E}", "a\u{2800}b"])
  func onlyInTexts(text: String) {
    #expect(text.isSafeToShow && text.sanitized == text && text.sanitizedText(atMost: 9) == text)
    #expect(!text.isSafeName && text.sanitizedName.isSafeName)
  }

  @Test("JSON keeps an ignorable character escaped, also one beyond the first plane") func escapedIgnorable() {
    #expect("a\u{E0100}\u{3164}".escapedForDisplay == #"a\udb40\udd00\u3164"#)
  }
}
