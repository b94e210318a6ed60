// SPDX-License-Identifier: Apache-2.0
import ControlProtocol
import JSONValues
import Testing

@Suite("The messages of `call`", .timeLimit(.minutes(1))) struct ResourceCallTests {
  @Test("A call is read as it was written", arguments: [nil, 0, 3, 256 << 10])
  func calls(bytes: Int?) throws {
    let body = bytes.map { count in (0..<count).map { [0, 255, 10][$0 % 3] as UInt8 } }
    let call = ResourceCall(account: "a", method: "PUT", url: "https://b", contentType: "t", body: body)
    #expect(try ControlRequest(line: ControlRequest.call(call).line) == .call(call))
  }

  @Test("A call with too long a body or media type, or a body that is not Base64, is refused")
  func refusals() {
    let head = #"{"request":"call","account":"a","method":"GET","url":"u","#
    let calls = [
      #""body":"?"}"#, #""body":7}"#, #""content_type":"\#(String(repeating: "x", count: 257))"}"#,
      #""body":"\#(String(repeating: "AAAA", count: 87_382))"}"#,
    ]
    for call in calls {
      #expect(throws: CommandError.self) { try ControlRequest(line: Array((head + call).utf8)) }
    }
  }

  @Test("Each line of a response is read as it was written") func replies() throws {
    for reply in [ResourceReply.head(status: 200, contentType: nil, size: 3), .part([0, 255]), .part([])] {
      guard case .answer(let read) = try ControlResponse<ResourceReply>(line: JSONMessage.encode(reply)) else {
        Issue.record("not an answer")
        return
      }
      #expect(read == reply)
    }
  }
}
