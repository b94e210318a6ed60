// SPDX-License-Identifier: Apache-2.0
import CPlugIn
import Foundation
import Testing

/// The parser of questions, in C.
@Suite("A question to a plug-in in C", .timeLimit(.minutes(1))) struct QuestionTests {
  private static let challenge = Data(0..<32).base64EncodedString()

  private static func line(
    _ more: String = "", v: String = "1", step: String = "register", server: String = "h", challenge: String = challenge
  ) -> String {
    #"{"v":\#(v),"step":"\#(step)","server":"\#(server)","challenge":"\#(challenge)"\#(more)}"#
  }

  /// - Returns: the question, and what is kept of the registration.
  private func parse(_ line: String) -> (plug_in_question, kept: [UInt8])? {
    var question = plug_in_question()
    var bytes = line.utf8.map(CChar.init(bitPattern:))
    return bytes.withUnsafeMutableBufferPointer { buffer in
      // A pointer to nothing is not one to the line.
      guard let line = buffer.baseAddress, plug_in_parse(line, buffer.count, &question) else { return nil }
      return (question, Array(UnsafeBufferPointer(start: question.registration, count: question.registration_size)))
    }
  }

  @Test("All members are read, and unknown texts are skipped") func members() throws {
    let (question, kept) = try #require(
      parse(Self.line(#","account":"a\"\\ü","registration":"BwgJ" "#, step: "authenticate")))
    #expect(question.step == plug_in_authenticate && kept == [7, 8, 9])
    #expect(withUnsafeBytes(of: question.challenge) { Array($0) } == Array(0..<32))
    #expect(withUnsafeBytes(of: question.server) { Array($0.prefix(2)) } == [UInt8(ascii: "h"), 0])
  }

  @Test("A registration has 0 to 32,768 bytes", arguments: [0, 1, 2, 32_768]) func registrations(size: Int) throws {
    let bytes = (0..<size).map { UInt8(truncatingIfNeeded: $0) }
    #expect(parse(Self.line(#","registration":"\#(Data(bytes).base64EncodedString())""#))?.kept == bytes)
    #expect(parse(Self.line())?.kept == [])
  }

  @Test(
    "Anything else is no question",
    arguments: [
      "", "{", "{}", "[]", "x", line(v: "2"), line(v: "\"1\""), line(v: "11"), line(step: "fly"), line(step: ""),
      line(server: ""), line(server: "a\\u0041"), line(server: String(repeating: "s", count: 256)),
      line(challenge: ""), line(challenge: "AAAA"), line(challenge: Data(0..<33).base64EncodedString()),
      line(challenge: String(challenge.dropLast())), line(challenge: "?" + challenge.dropFirst()),
      line(challenge: "=" + challenge.dropFirst()), line(#","step":"register""#), line(#","registration":"A""#),
      line(#","registration":"AA=A""#), line(#","registration":"A===""#), line(#","registration":"-_-_""#),
      line(#","registration":7"#), line(#","registration":"AA\/\/""#),
      line(#","registration":""# + Data(count: 32_769).base64EncodedString() + #"""#), line(",") + "}",
      line(#","account":5"#), line(#","account":{}"#), line(#","account":"x"#), line() + "x", line() + line(),
      line(#","account":""# + String(repeating: "x", count: 65_536) + #"""#), line("\u{1}"), line(#","a":"\"#),
    ])
  func malformed(line: String) {
    #expect(parse(line).map { _ in "a question" } == nil)
  }
}
