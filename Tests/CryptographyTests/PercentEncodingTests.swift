// SPDX-License-Identifier: Apache-2.0
import Cryptography
import Testing

@Suite("Percent decoding", .timeLimit(.minutes(5))) struct PercentEncodingTests {
  @Test(
    "Leaves a plus sign as it is",
    arguments: [
      ("", ""), ("a+b%20c", "a+b c"), ("%C3%A9%c3%a9", "éé"), ("%2B%26%3D%25", "+&=%"), ("%00", "\u{0}"),
    ])
  func leavesAPlusSignAsItIs(encoded: String, plain: String) { #expect(percentDecoded(encoded.utf8) == plain) }

  @Test(
    "Rejects other text than percent-encoded UTF-8",
    arguments: ["%", "%4", "a%", "%zz", "%4z", "%%41", "%FF", "%C3", "%+1", "%é0"])
  func rejectsOtherTextThanPercentEncodedUTF8(encoded: String) { #expect(percentDecoded(encoded.utf8) == nil) }
}
