import MobileAuth
import Testing

@Suite struct TextForPeopleTests {
  @Test(arguments: [
    ("", ""), ("abcd", "abcd"), ("abcde", "abc…"), ("a\u{202E}b\ncd", "abcd"),
    ("e\u{301}\u{301}ab", "e\u{301}\u{301}…"),
  ])
  func whatIsNotAllThereSaysSo(text: String, shown: String) {
    #expect(text.forPeople(atMost: 4).unicodeScalars.elementsEqual(shown.unicodeScalars))
  }
}
