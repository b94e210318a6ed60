// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import Courier
import Cryptography
import MobileAuth
import Synchronization
import Testing

@testable import PrivacyIDEAAdapter

@Suite(.timeLimit(.minutes(5))) struct `What the server says to an enrolment` {
  private let world = EnrolmentWorld()

  /// These responses are not accepted as the server's, and nothing unusable is stored.
  @Test(arguments: [
    (#"{"result":{"status":true,"value":false}}"#, 9001), ("<html>welcome", 9001),
    (#"{"result":{"status":true,"value":true}}"#, 9001),
    (#"{"result":{"status":true,"value":true},"detail":{"serial":"PIPU2","public_key":"KEY"}}"#, 10001),
    (#"{"result":{"status":true,"value":true},"detail":{"serial":"PIPU1"}}"#, 10001),
    (#"{"result":{"status":true,"value":true},"detail":{"serial":"PIPU1","public_key":"MIIBCgKCAQEA"}}"#, 10001),
  ])
  func `An answer that is none enrols nothing`(answer: String, number: Int) async throws {
    let key = FakePushServer.signingKey.publicKey.pkcs1.base64
    let response = HTTPResponse(status: 200, body: Array(answer.replacing("KEY", with: key).utf8))
    world.server.state.withLock { $0.failures = [response, response] }
    await #expect {
      try await world.enrolment().enrol(world.server.prepare("PIPU1"), name: nil, trust: ServerTrust())
    } throws: { ($0 as? TokenServerFault)?.number == number }
    #expect(try world.registry.accounts().allSatisfy { $0.stage != .active })
    #expect(try world.credentials("PIPU1")?.active == nil)
  }
}
