// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import Cryptography
import HTTP
import MobileAuth
import Synchronization
import Testing

@testable import PrivacyIDEAAdapter

@Suite("What the server says to an enrollment", .timeLimit(.minutes(5))) struct EnrollmentAnswerTests {
  private let fixture = EnrollmentFixture()

  /// These responses are not accepted as the server's, and nothing unusable is stored.
  @Test(
    "An answer that is none enrols nothing",
    arguments: [
      (#"{"result":{"status":true,"value":false}}"#, 9001), ("<html>welcome", 9001),
      (#"{"result":{"status":true,"value":true}}"#, 9001),
      (#"{"result":{"status":true,"value":true},"detail":{"serial":"PIPU2","public_key":"KEY"}}"#, 10001),
      (#"{"result":{"status":true,"value":true},"detail":{"serial":"PIPU1"}}"#, 10001),
      (#"{"result":{"status":true,"value":true},"detail":{"serial":"PIPU1","public_key":"MIIBCgKCAQEA"}}"#, 10001),
    ])
  func answerThatIsNoneEnrolsNothing(answer: String, number: Int) async throws {
    let key = FakePushServer.signingKey.publicKey.pkcs1.base64
    let response = HTTPResponse(status: 200, body: Array(answer.replacing("KEY", with: key).utf8))
    fixture.server.state.withLock { $0.failures = [response, response] }
    await #expect {
      try await fixture.enrollment().enroll(fixture.server.prepare("PIPU1"), name: nil, trust: ServerTrust())
    } throws: { ($0 as? TokenServerError)?.number == number }
    #expect(try fixture.registry.accounts().allSatisfy { $0.stage != .active })
    #expect(try fixture.credentials("PIPU1")?.active == nil)
  }

  @Test("A refused first poll does not end the enrollment") func refusedFirstPoll() async throws {
    fixture.server.state.withLock { $0.hasNoRegistrationURL = true }
    let account = try await fixture.enrollment().enroll(
      fixture.server.prepare("PIPU1"), name: nil, trust: ServerTrust())
    #expect(account.stage == .active)
    #expect(fixture.progress.withLock { $0.last } == "enrolled, but the first poll failed: \(PollError.notKnown)")
    fixture.server.state.withLock { $0.hasNoRegistrationURL = false }
    #expect(try await fixture.isUsable("PIPU1"))
  }
}
