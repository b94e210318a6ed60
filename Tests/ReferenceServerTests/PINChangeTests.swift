// SPDX-License-Identifier: Apache-2.0
import Cryptography
import Foundation
import ReferenceProtocol
import Secrets
import ServerTestSupport
import Testing

/// PIN changes in two phases, against the running server.
@Suite(.timeLimit(.minutes(5)), .mayBlock) struct PINChangeTests {
  let fixture: PINFixture
  let device: DeviceClient

  init() throws {
    (fixture, device) = try PINFixture.enrolled()
  }

  private func begin() throws -> (id: String, refreshToken: SecretBytes) {
    let (reply, change) = try device.beginPINChange()
    try reply.expect(201)
    return try #require(change)
  }

  @Test("The new one counts from its commit") func theNewOneCountsFromItsCommit() throws {
    let old = try #require(device.refreshToken)
    let transaction = try fixture.ask(device)
    let fetched = try device.fetch(transaction)
    let (id, new) = try begin()
    #expect(!SecretBytes.constantTimeEqual(old, new))
    #expect(try device.pinChangeState(id) == .pending)
    #expect(try device.logInWithPIN(new).errorCode == 9009)
    try device.logInWithPIN(old).expect(200)
    try device.commitPINChange(id, new).expect(204)
    #expect(try device.pinChangeState(id) == .committed)
    #expect(try device.logInWithPIN(old).errorCode == 9009)
    let wrong = try device.send(device.answerWithPIN(fetched, old), to: transaction)
    #expect(wrong.slug == .pinIncorrect && wrong.counts == [3, 2, 1])
    try device.logInWithPIN(new).expect(200)
    #expect(try device.failureCounts()?.previousFailureCount == 0)
  }

  @Test("An assertion of the old PIN opens nothing after it") func anAssertionOfTheOldPINOpensNothingAfterIt() throws {
    let assertion = try device.assertion("/oauth/token")
    try device.logInWithPIN(assertion: assertion).expect(200)
    let path = "/device/v1/profiles/PROF01/pin-changes"
    let order = try device.assertion(path)
    let change = try #require(try device.beginPINChange(assertion: order).change)
    try device.commitPINChange(change.id, change.refreshToken).expect(204)
    #expect(try device.logInWithPIN(assertion: assertion).errorCode == 10015)
    #expect(try device.beginPINChange(assertion: order).reply.slug == .alreadyHandled)
    #expect(try device.failureCounts()?.previousFailureCount == 0)
  }

  @Test("A lost answer to the commit") func aLostAnswerToTheCommit() throws {
    let (id, new) = try begin()
    let assertion = try device.assertion(
      "/device/v1/profiles/PROF01/pin-changes/\(id)/commit", new, nonce: id)
    for _ in 1...2 { try device.commitPINChange(id, new, assertion: assertion).expect(204) }
    _ = fixture.server.stop(killing: true)
    let again = try PINFixture(after: fixture)
    #expect(try device.pinChangeState(id) == .committed)
    try device.commitPINChange(id, new).expect(204)
    try device.logInWithPIN(new).expect(200)
    _ = again
  }

  @Test("A lost answer to the beginning") func aLostAnswerToTheBeginning() throws {
    let assertion = try device.assertion("/device/v1/profiles/PROF01/pin-changes")
    let first = try #require(try device.beginPINChange(assertion: assertion).change)
    let second = try #require(try device.beginPINChange(assertion: assertion).change)
    #expect(!SecretBytes.constantTimeEqual(first.refreshToken, second.refreshToken))
    #expect(try device.pinChangeState(first.id) == .void)
    #expect(try device.commitPINChange(first.id, first.refreshToken).slug == .notFound)
    try device.commitPINChange(second.id, second.refreshToken).expect(204)
  }

  @Test("A change that is not committed is void after ten minutes")
  func aChangeThatIsNotCommittedIsVoidAfterTenMinutes() throws {
    let (id, new) = try begin()
    try fixture.server.query("UPDATE pin_change SET created_at_ms = created_at_ms - 600000")
    #expect(try device.pinChangeState(id) == .void)
    #expect(try device.commitPINChange(id, new).slug == .notFound)
    try device.logInWithPIN().expect(200)
  }

  @Test("A new PIN cannot be guessed at while its change is open") func aNewPINCannotBeGuessedAtWhileItsChangeIsOpen()
    throws
  {
    let (id, new) = try begin()
    #expect(try device.commitPINChange(id, .wrong).slug == .answerInvalid)
    #expect(try device.commitPINChange(id, new).slug == .notFound)
    #expect(try device.pinChangeState(id) == .void)
    try device.logInWithPIN().expect(200)
  }

  @Test("A wrong PIN counts") func aWrongPINCounts() throws {
    let first = try device.beginPINChange(.wrong).reply
    #expect(first.status == 422 && first.slug == .pinIncorrect && first.counts == [3, 1, 2])
    #expect(try first.decoded(Problem.self).nonce == nil)
    let assertion = try device.assertion("/device/v1/profiles/PROF01/pin-changes", .wrong)
    for _ in 1...3 { #expect(try device.beginPINChange(assertion: assertion).reply.counts == [3, 2, 1]) }
    let last = try device.beginPINChange(.wrong).reply
    #expect(last.slug == .userDeregistered && last.counts == [3, 3, 0])
    #expect(try device.call("GET", "/device/v1/pending").status == 200)
  }

  @Test("What is no attempt is not counted") func whatIsNoAttemptIsNotCounted() throws {
    let elsewhere = try device.assertion("/oauth/token", .wrong)
    #expect(try device.beginPINChange(assertion: elsewhere).reply.slug == .invalidRequest)
    let path = "/device/v1/profiles/PROF01/pin-changes"
    let body = PINChangeRequest(assertion: try device.assertion(path, .wrong), ephemeralCertificate: "AAAA")
    #expect(try device.call("POST", path, body: body, token: device.userToken).slug == .invalidRequest)
    let late = try device.assertion(path, .wrong) {
      $0.iat -= 3600; $0.exp -= 3600
    }
    #expect(try device.beginPINChange(assertion: late).reply.slug == .invalidDatetime)
    #expect(try device.failureCounts()?.previousFailureCount == 0)
  }

  @Test("It needs the user and ends with them") func itNeedsTheUserAndEndsWithThem() throws {
    let user = device.userToken
    device.userToken = device.deviceToken
    #expect(try device.beginPINChange().reply.slug == .notAuthenticated)
    device.userToken = user
    let (id, new) = try begin()
    #expect(try DeviceClient.enrolledWithPIN(at: fixture.server, as: "bob").pinChangeState(id) == .void)
    try device.call("DELETE", "/device/v1/profiles/PROF01").expect(204)
    #expect(try device.commitPINChange(id, new).slug == .userDeregistered)
  }
}
