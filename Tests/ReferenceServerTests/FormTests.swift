// SPDX-License-Identifier: Apache-2.0
import Testing

@testable import TokenServerHTTP

@Suite(.timeLimit(.minutes(5)), .mayBlock) struct FormTests {
  @Test("Fields") func fields() throws {
    let form = try Form(parsing: Array("a=b+c&d=%C3%A9%26&empty=&flag".utf8))
    #expect(form["a"] == "b c")
    #expect(form["d"] == "é&")
    #expect(form["empty"] == nil && form["flag"] == nil && form["none"] == nil)
  }

  @Test(
    "Refused",
    arguments: [
      ("a=1&a=2", Form.FormError.repeated("a")), ("a=%", .badEncoding), ("a=%4", .badEncoding), ("a=%zz", .badEncoding),
      ("a=%ff", .badEncoding), ("%ff=a", .badEncoding),
      ((1...65).map { "a\($0)=1" }.joined(separator: "&"), .tooMany),
    ])
  func refused(text: String, refusal: Form.FormError) {
    #expect(throws: refusal) { try Form(parsing: Array(text.utf8)) }
  }
}
