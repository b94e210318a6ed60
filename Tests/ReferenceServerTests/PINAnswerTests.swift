// SPDX-License-Identifier: Apache-2.0
import Cryptography
import Foundation
import ReferenceProtocol
import Secrets
import ServerTestSupport
import Testing

/// Answers that need the PIN, against the running server.
@Suite(.timeLimit(.minutes(5)), .mayBlock) struct PINAnswerTests {
  let fixture: PINFixture
  let device: DeviceClient

  init() throws {
    (fixture, device) = try PINFixture.enrolled()
  }

  @Test("The request says how the PIN stands") func theRequestSaysHowThePINStands() throws {
    let transaction = try fixture.ask(device)
    let (first, again) = (try device.fetch(transaction), try device.fetch(transaction))
    #expect(first.bytes == again.bytes)
    #expect(first.request.method == .pushWithPIN)
    #expect(first.request.maxFailureCount == 3 && first.request.previousFailureCount == 0)
    #expect(first.request.remainingFailureCount == 3)
    let plain = try device.fetch(fixture.ask(device, type: "login")).request
    #expect(plain.method == .push && plain.maxFailureCount == nil)
  }

  @Test("The right PIN") func theRightPIN() throws {
    let transaction = try fixture.ask(device)
    let answer = try device.answerWithPIN(device.fetch(transaction))
    let key = Random.uuid()
    let first = try device.send(answer, to: transaction, key: key).expect(200)
    #expect(try first.decoded(RequestStatus.self).state == .authenticated)
    #expect(try device.send(answer, to: transaction, key: key).body == first.body)
    #expect(try device.failureCounts()?.previousFailureCount == 0)
  }

  @Test("A wrong PIN then the right one") func aWrongPINThenTheRightOne() throws {
    let transaction = try fixture.ask(device)
    let fetched = try device.fetch(transaction)
    let wrong = try device.send(device.answerWithPIN(fetched, .wrong), to: transaction)
    #expect(wrong.status == 422 && wrong.slug == .pinIncorrect && wrong.counts == [3, 1, 2])
    #expect(try wrong.decoded(Problem.self).code == 9009)
    let nonce = try #require(try wrong.decoded(Problem.self).nonce)
    #expect(nonce != fetched.request.nonce)
    #expect(try fixture.result(transaction)["is_authenticated"] as? Bool == false)
    // The bytes on the token are still the request; only the nonce has changed.
    let right = try device.answerWithPIN(fetched, attempt: 2, nonce: nonce)
    #expect(try device.send(right, to: transaction).expect(200).decoded(RequestStatus.self).state == .authenticated)
    #expect(try fixture.result(transaction)["used_authentication_attempts"] as? Int == 2)
    #expect(try device.failureCounts()?.previousFailureCount == 0)
  }

  @Test("A token that forgot fetches what it needs") func aTokenThatForgotFetchesWhatItNeeds() throws {
    let transaction = try fixture.ask(device)
    let first = try device.fetch(transaction)
    try device.send(device.answerWithPIN(first, .wrong), to: transaction).expect(422)
    let second = try device.fetch(transaction)
    #expect(second.request.nonce != first.request.nonce)
    #expect(second.request.previousFailureCount == 1 && second.request.remainingFailureCount == 2)
    #expect(try device.fetch(transaction).bytes == second.bytes)
    // An answer to the second version is accepted, like an answer to the first.
    let wrong = try device.send(device.answerWithPIN(second, .wrong, attempt: 2), to: transaction)
    let nonce = try wrong.expect(422).decoded(Problem.self).nonce
    _ = try device.fetch(transaction)
    try device.send(device.answerWithPIN(second, attempt: 3, nonce: nonce), to: transaction).expect(200)
    #expect(try fixture.result(transaction)["used_authentication_attempts"] as? Int == 3)
  }

  typealias Change = @Sendable (inout ApprovalAnswer) -> Void

  static let changes: [(String, Change)] = [
    ("no proof", { $0.pinProof = nil }), ("no Base64url", { $0.pinProof = "+" }), ("short", { $0.pinProof = "AAAA" }),
    ("method", { $0.methodUsed = .push }), ("attempt", { $0.attempt = 2 }), ("attempt", { $0.attempt = 0 }),
    ("nonce", { $0.nonce = Random.bytes(32).base64URL }),
    ("request", { $0.requestSHA256 = Random.bytes(32).base64URL }),
  ]

  @Test("What is no attempt is not counted") func whatIsNoAttemptIsNotCounted() throws {
    for (name, change) in Self.changes {
      let transaction = try fixture.ask(device)
      let fetched = try device.fetch(transaction)
      let answer = try device.answerWithPIN(fetched, .wrong, change: change)
      #expect(try device.send(answer, to: transaction).slug == .answerInvalid, "\(name)")
      #expect(try device.failureCounts()?.previousFailureCount == 0)
      try device.send(device.answerWithPIN(fetched), to: transaction).expect(200)
    }
  }

  @Test("A proof is for its nonce request and decision") func aProofIsForItsNonceRequestAndDecision() throws {
    typealias Change = (inout ApprovalClaim) -> Void
    let changes: [Change] = [
      { $0.nonce = Random.bytes(32) }, { $0.requestSHA256 = Random.bytes(32) }, { $0.decision = .deny },
    ]
    for change in changes {
      let transaction = try fixture.ask(device)
      let fetched = try device.fetch(transaction)
      var claim = ApprovalClaim(
        nonce: bytes(base64URL: fetched.request.nonce)!, requestSHA256: SHA256.hash(fetched.bytes), decision: .accept)
      change(&claim)
      let proof = try device.knowledgeKey().proof(claim).base64URL
      let answer = try device.answerWithPIN(fetched) { $0.pinProof = proof }
      #expect(try device.send(answer, to: transaction).slug == .pinIncorrect, "\(claim)")
      try device.logInWithPIN().expect(200)
    }
  }

  @Test("A nonce is good once") func aNonceIsGoodOnce() throws {
    let transaction = try fixture.ask(device)
    let fetched = try device.fetch(transaction)
    try device.send(device.answerWithPIN(fetched, .wrong), to: transaction).expect(422)
    #expect(try device.send(device.answerWithPIN(fetched, attempt: 2), to: transaction).slug == .answerInvalid)
    #expect(try device.failureCounts()?.previousFailureCount == 1)
  }

  @Test("A refusal needs no PIN") func aRefusalNeedsNoPIN() throws {
    let (first, second) = (try fixture.ask(device), try fixture.ask(device))
    try device.deny(first, .declined).expect(200)
    let fetched = try device.fetch(second)
    let wrong = try device.send(device.answerWithPIN(fetched, .wrong), to: second)
    let nonce = try wrong.decoded(Problem.self).nonce
    let refusal = try device.answerWithPIN(fetched, attempt: 2, nonce: nonce) {
      ($0.decision, $0.reason, $0.pinProof) = (.deny, .canceled, nil)
    }
    #expect(try device.send(refusal, to: second).expect(200).decoded(RequestStatus.self).state == .rejected)
    #expect(try device.failureCounts()?.previousFailureCount == 1)
  }

  @Test("The same answer is the same attempt") func theSameAnswerIsTheSameAttempt() throws {
    let transaction = try fixture.ask(device)
    let fetched = try device.fetch(transaction)
    let (answer, key) = (try device.answerWithPIN(fetched, .wrong), Random.uuid())
    let first = try device.send(answer, to: transaction, key: key).expect(422)
    for _ in 1...4 { #expect(try device.send(answer, to: transaction, key: key).body == first.body) }
    #expect(
      try device.send(device.answerWithPIN(fetched), to: transaction, key: key).slug == .idempotencyConflict)
    #expect(try device.failureCounts()?.previousFailureCount == 1)
  }

  @Test("The limit takes that user off the device and no other") func theLimitTakesThatUserOffTheDeviceAndNoOther()
    throws
  {
    let other = try device.secondUser("bob", profile: "PROF02")
    let (answered, open) = (try fixture.ask(device), try fixture.ask(device))
    let others = try fixture.ask(other, user: "bob")
    try device.logInWithPIN(.wrong).expect(400)
    let cursor = try device.events(after: nil)?.cursor
    var fetched = try device.fetch(answered)
    try device.send(device.answerWithPIN(fetched, .wrong), to: answered).expect(422)
    fetched = try device.fetch(answered)
    let (answer, key) = (try device.answerWithPIN(fetched, .wrong, attempt: 2), Random.uuid())
    let last = try device.send(answer, to: answered, key: key)
    #expect(last.status == 403 && last.slug == .userDeregistered && last.counts == [3, 3, 0])
    #expect(try device.send(answer, to: answered, key: key).body == last.body)
    #expect(try device.deny(open, .declined).slug == .alreadyHandled)
    #expect(try fixture.result(answered)["used_authentication_attempts"] as? Int == 2)
    #expect(
      try device.events(after: cursor)?.events == [
        DeviceEvent(.requestClosed, transactionID: answered, profileID: "PROF01", reason: .answered),
        DeviceEvent(.requestClosed, transactionID: open, profileID: "PROF01", reason: .revoked),
        DeviceEvent(.profileRevoked, profileID: "PROF01"),
      ])
    #expect(try other.failureCounts()?.previousFailureCount == 0)
    try other.send(other.answerWithPIN(other.fetch(others)), to: others).expect(200)
  }
}
