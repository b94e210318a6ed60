// SPDX-License-Identifier: Apache-2.0
import JSONSchema
import JSONValues
import MobileAuth
import Testing

@testable import AuthenticatorPlugins

/// The schemas in `docs/schemas` describe what the token writes to a plug-in, and what it reads.
@Suite("The schemas of plug-ins", .timeLimit(.minutes(1))) struct PluginSchemaTests {
  @Test("The question has the form of its schema", arguments: DriverCall.Step.allCases, [[UInt8](), [1, 2]])
  func question(step: DriverCall.Step, registration: [UInt8]) throws {
    let call = DriverCall(
      step: step, server: "h", account: "alice", authenticator: "badge", challenge: [UInt8](0..<32),
      registration: registration)
    let line = String(decoding: PluginQuestion(call).line, as: UTF8.self)
    #expect(try JSONSchema(named: "plug-in-input").violations(in: line) == [])
  }

  @Test(
    "What the schema allows is what is read",
    arguments: [
      (#"{"waiting":"touch it"}"#, true), (#"{"retry":"again"}"#, true), (#"{"data":"AQID"}"#, true),
      (#"{"data":"","registration":"BwgJ"}"#, true), (#"{"cancel":""}"#, true), (#"{"fallback":true}"#, true),
      ("{}", false), ("[]", false), (#"{"fallback":false}"#, false), (#"{"data":5}"#, false), (#"{"data":"!"}"#, false),
      (#"{"registration":"BwgJ"}"#, false), (#"{"waiting":"x","registration":"BwgJ"}"#, false),
      (#"{"data":"AQID","cancel":"x"}"#, false), (#"{"waiting":"x","more":1}"#, false),
    ])
  func answers(line: String, isAllowed: Bool) throws {
    #expect(try JSONSchema(named: "plug-in-output").violations(in: line).isEmpty == isAllowed)
    #expect(((try? PluginLine.parse(Array(line.utf8))) != nil) == isAllowed)
  }
}
