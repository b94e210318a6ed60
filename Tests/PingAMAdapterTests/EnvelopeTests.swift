// SPDX-License-Identifier: Apache-2.0
import JSONValues
import Testing

@testable import PingAMAdapter

@Suite("A push message comes", .timeLimit(.minutes(5))) struct EnvelopeTests {
  private static let map = #"{"message":"a.b.c","messageId":"AUTHENTICATE:1"}"#
  private static let aps = #"{"aps":{"alert":"x","data":"a.b.c","messageId":"AUTHENTICATE:1"}}"#
  private static func quoted(_ text: String) -> String { JSONValue.text(text).canonical }

  @Test(
    "In any of the forms",
    arguments: [
      map, #"{"priority":"high","data":\#(map)}"#, #"{"PRIORITY":"high","data":\#(map)}"#, aps,
      #"{"default":"x","GCM":\#(quoted(#"{"data":\#(map)}"#))}"#, #"{"default":"x","APNS":\#(quoted(aps))}"#,
      #"{"APNS_SANDBOX":\#(quoted(aps))}"#, #"{"Type":"Notification","Message":\#(quoted(map))}"#,
      #"{"Message":\#(quoted(#"{"GCM":\#(quoted(#"{"data":\#(map)}"#))}"#))}"#, " \n\(map)\n",
    ])
  func inAnyOfTheForms(json: String) throws {
    #expect(try PushEnvelope(Array(json.utf8)) == PushEnvelope(messageID: "AUTHENTICATE:1", token: "a.b.c"))
  }

  @Test("As the vectors have Amazon's form") func asTheVectorsHaveAmazonsForm() throws {
    let vector = try #require(Vectors.all("sns").first)
    for name in ["GCM", "APNS"] {
      let form = JSONValue.object([name: try #require(vector[name]), "default": .text("x")]).canonical
      let envelope = try PushEnvelope(Array(form.replacing("<JWT>", with: "a.b.c").utf8))
      #expect(envelope.token == "a.b.c" && envelope.messageID == vector["messageId"]?.text)
    }
  }

  @Test(
    "Or not at all",
    arguments: [
      ("", "not a JSON object"), ("[]", "not a JSON object"), ("a.b.c", "not a JSON object"),
      (#""a.b.c""#, "not a JSON object"), (#"{"messageId":"1"}"#, "no message"),
      (#"{"message":"a.b.c"}"#, "no messageId"), (#"{"message":"","messageId":"1"}"#, "no message"),
      (#"{"message":"a","messageId":""}"#, "no messageId"), (#"{"message":1,"messageId":"1"}"#, "no message"),
      (#"{"message":"a","messageId":1}"#, "no messageId"), (#"{"message":"a","messageId":"1\n2"}"#, "messageId"),
      (#"{"message":"a","messageId":"\#(String(repeating: "1", count: 257))"}"#, "messageId"),
      (#"{"aps":{"message":"a","messageId":"1"}}"#, "no message"), (#"{"GCM":"{"}"#, "no messageId"),
      (#"{"data":"a","messageId":"1"}"#, "no messageId"), (map + map, "not a JSON object"),
    ])
  func orNotAtAll(json: String, why: String) {
    #expect(throws: PushEnvelope.ParseError.malformed(why)) { try PushEnvelope(Array(json.utf8)) }
  }

  @Test("In 16 KiB at most") func in16KiBAtMost() throws {
    let bytes = Array(Self.map.utf8)
    let padding = [UInt8](repeating: 0x20, count: 16_384 - bytes.count)
    #expect(try PushEnvelope(bytes + padding).token == "a.b.c")
    #expect(throws: PushEnvelope.ParseError.tooLarge) { try PushEnvelope(bytes + padding + [0x20]) }
  }
}
