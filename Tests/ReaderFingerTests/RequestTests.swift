// SPDX-License-Identifier: Apache-2.0
import Testing

/// Standard input of `reader-finger`.
@Suite("Requests to the fingerprint reader", .serialized, .timeLimit(.minutes(5))) struct RequestTests {
  private func answer(to input: String) throws -> String {
    let reader = try ReaderProcess(nil)
    reader.send(input)
    let answer = try reader.next()
    #expect(try reader.next() == "end")
    let end = try reader.end()
    #expect(end == (answer == "cancel: the request is not valid" ? 65 : 0))
    return answer
  }

  @Test("A request may have other texts, also escaped") func validRequest() throws {
    let line = ReaderProcess.request("deregister", #","account":"\ud83d\ude00 ä""#)
    #expect(try answer(to: line + "\n") == "data: ")
  }

  /// What the parser refuses: `QuestionTests`.
  @Test(
    "What is no request is refused",
    arguments: [
      "", "{}", ReaderProcess.request("enroll"), ReaderProcess.request("register", #","step":"authenticate""#),
      ReaderProcess.request("authenticate", #","registration":"AAA""#),
      ReaderProcess.request(
        "authenticate", #","registration":"\#(String(repeating: "A", count: 43_696))""#),
    ])
  func invalidRequests(line: String) throws {
    #expect(try answer(to: line + "\n") == "cancel: the request is not valid")
  }

  /// libfprint aborts the process if it gets no bytes.
  @Test("A request without a registration is canceled", arguments: ["", #","registration":"""#])
  func noRegistration(more: String) throws {
    let reader = try ReaderProcess(.device)
    reader.send(ReaderProcess.request("authenticate", more) + "\n")
    #expect(try reader.next() == "cancel: the registration is of another reader")
    #expect(try reader.end() == 0)
  }

  @Test("A line of 1 MB, and a line without an end, are refused") func longLines() throws {
    let million = String(repeating: "x", count: 1_000_000)
    #expect(
      try answer(to: ReaderProcess.request("deregister", #","a":"\#(million)""#) + "\n")
        == "cancel: the request is not valid")
    #expect(try answer(to: million) == "cancel: the request is not valid")
  }

  @Test("A second line with the request is refused") func twoLines() throws {
    let line = ReaderProcess.request("deregister") + "\n"
    #expect(try answer(to: line + line) == "cancel: the request is not valid")
  }

  @Test("A connection that ends before the request has no effect") func hungUpEarly() throws {
    let reader = try ReaderProcess(nil)
    reader.send(#"{"v":1,"#)
    reader.hangUp()
    #expect([65, 1].contains(try reader.end()))
  }
}
