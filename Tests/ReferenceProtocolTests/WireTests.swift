// SPDX-License-Identifier: Apache-2.0
import ReferenceProtocol
import Testing

@Suite(.timeLimit(.minutes(5))) struct WireTests {
  private func decode<Value: Decodable>(_ type: Value.Type, _ text: String) -> WireError? {
    do {
      _ = try JSON.decode(type, from: Array(text.utf8))
      return nil
    } catch { return error }
  }

  @Test(
    "A wrong list says what is wrong",
    arguments: [
      ("", "not JSON"), ("nonsense", "not JSON"), ("[]", "the whole text is not an object"),
      ("{}", "\"server_time_ms\" is missing"),
      (#"{"server_time_ms":"1","requests":[]}"#, "\"server_time_ms\" is not a"),
      (#"{"server_time_ms":1e400,"requests":[]}"#, ""),
      (#"{"server_time_ms":1,"requests":null}"#, "\"requests\" is null"),
      (#"{"server_time_ms":1,"requests":{}}"#, "\"requests\" is not a"),
      (#"{"server_time_ms":1,"requests":[{}]}"#, "is missing"),
    ])
  func aWrongListSaysWhatIsWrong(text: String, reason: String) throws {
    let error = try #require(decode(PendingList.self, text))
    #expect("\(error)".contains(reason), "\(error)")
  }

  @Test(
    "An unknown state is refused",
    arguments: [
      #"{"state":"won"}"#, #"{"state":"AUTHENTICATED"}"#, #"{"state":1}"#, #"{"state":null}"#,
    ])
  func anUnknownStateIsRefused(text: String) {
    #expect(decode(RequestStatus.self, text) != nil)
  }

  @Test("Unknown members are ignored") func unknownMembersAreIgnored() throws {
    #expect(decode(RequestStatus.self, #"{"state":"open","new":{"a":[1]}}"#) == nil)
  }

  /// 100,000 brackets deep, in an object and bare: refused, not a stack overflow.
  @Test("A bomb is refused", arguments: ["[", #"{"a":"#])
  func aBombIsRefused(opening: String) {
    #expect(decode(PendingList.self, String(repeating: opening, count: 100_000)) != nil)
    #expect(
      decode(RequestStatus.self, #"{"state":"open","x":"# + String(repeating: "[", count: 100_000)) != nil)
  }

  /// Fails if a newer server cannot add a kind of event.
  @Test("An unknown kind of event lets the token read the list") func unknownEventsResync() throws {
    let event = try JSON.decode(DeviceEvent.self, from: Array(#"{"kind":"new-in-2030"}"#.utf8))
    #expect(event == DeviceEvent(.resync))
    #expect(decode(DeviceEvent.self, #"{"kind":7}"#) != nil)
  }

  @Test("Equal values have equal bytes") func equalValuesHaveEqualBytes() {
    let value = RequestStatus(state: .open, receipt: "a/b", expiresInMs: 5)
    #expect(JSON.encode(value) == Array(#"{"expires_in_ms":5,"receipt":"a/b","state":"open"}"#.utf8))
  }

  @Test("A problem carries its slug number and status", arguments: Problem.Slug.allCases)
  func aProblemCarriesItsSlugNumberAndStatus(slug: Problem.Slug) throws {
    let problem = try JSON.decode(Problem.self, from: JSON.encode(Problem(slug, issuer: "https://h", detail: "d")))
    #expect(problem.slug == slug)
    #expect(problem.type == "https://h/problems/\(slug.rawValue)")
    #expect(problem.code == slug.code)
    #expect((400..<500).contains(problem.status) || slug == .authenticatorError)
    #expect(9000...10_999 ~= problem.code)
  }
}
