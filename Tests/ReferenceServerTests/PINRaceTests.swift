// SPDX-License-Identifier: Apache-2.0
import Cryptography
import Foundation
import ReferenceProtocol
import Secrets
import ServerTestSupport
import Testing

/// Races, kill -9 and repeated messages: the count stays correct.
@Suite(.timeLimit(.minutes(5)), .mayBlock) struct PINRaceTests {
  private static func command(
    _ device: DeviceClient, _ answer: SealedAnswer, to transaction: String, key: String = Random.uuid()
  ) throws -> Curl.Command {
    (
      try device.arguments(
        "POST", "/device/v1/requests/\(transaction)/answers", headers: ["Idempotency-Key: \(key)"]),
      JSON.encode(answer)
    )
  }

  /// Attempts after the correct one are counted from one again, so each part is 1, 2, 3 … without a gap.
  private static func areCountedOnce(_ wrong: [Int], failuresNow: Int) -> Bool {
    let before = wrong.count - failuresNow
    return before >= 0 && wrong.sorted() == (Array(1..<(before + 1)) + Array(1..<(failuresNow + 1))).sorted()
  }

  @Test("Eight answers to one request and one is right") func eightAnswersToOneRequestAndOneIsRight() throws {
    let (fixture, device) = try PINFixture.enrolled(attempts: 10)
    let transaction = try fixture.ask(device)
    let fetched = try device.fetch(transaction)
    let commands = try (0..<8).map { index in
      try Self.command(device, device.answerWithPIN(fetched, index == 4 ? nil : .wrong), to: transaction)
    }
    let replies = try fixture.server.curl.race(commands)
    // The first verified answer uses up the nonce or ends the request; the others are not attempts.
    let verified = replies.filter { $0.status == 200 || $0.slug == .pinIncorrect }
    #expect(verified.count == 1, "\(replies.map(\.status))")
    let isRight = verified.first?.status == 200
    #expect(isRight == (replies[4].status == 200))
    #expect(try device.failureCounts()?.previousFailureCount == (isRight ? 0 : 1))
    #expect(try fixture.result(transaction)["used_authentication_attempts"] as? Int == 1)
  }

  @Test("Eight answers to eight requests and one is right") func eightAnswersToEightRequestsAndOneIsRight() throws {
    let (fixture, device) = try PINFixture.enrolled(attempts: 10)
    let commands = try (0..<8).map { index in
      let transaction = try fixture.ask(device)
      let answer = try device.answerWithPIN(device.fetch(transaction), index == 4 ? nil : .wrong)
      return try Self.command(device, answer, to: transaction)
    }
    let replies = try fixture.server.curl.race(commands)
    #expect(replies[4].status == 200)
    let wrong = replies.filter { $0.slug == .pinIncorrect }.compactMap { $0.counts[1] }
    #expect(wrong.count == 7)
    let failures = try #require(try device.failureCounts()).previousFailureCount
    #expect(Self.areCountedOnce(wrong, failuresNow: failures), "\(wrong), \(failures) now")
  }

  @Test("Only the limit is ever verified") func onlyTheLimitIsEverVerified() throws {
    let (fixture, device) = try PINFixture.enrolled(attempts: 3)
    var commands: [Curl.Command] = []
    for _ in 0..<4 {
      let transaction = try fixture.ask(device)
      commands.append(
        try Self.command(device, device.answerWithPIN(device.fetch(transaction), .wrong), to: transaction))
      commands.append((try device.tokenArguments(device.loginForm(.wrong)), nil))
    }
    let replies = try fixture.server.curl.race(commands)
    #expect(replies.compactMap { $0.counts[1] }.sorted() == [1, 2, 3])
    #expect(replies.filter { $0.counts[2] == 0 }.count == 1)
    #expect(try device.logInWithPIN().errorCode == 9003)
  }

  @Test("A login and an answer") func aLoginAndAnAnswer() throws {
    let (fixture, device) = try PINFixture.enrolled(attempts: 10)
    for _ in 1...5 {
      let transaction = try fixture.ask(device)
      let answer = try device.answerWithPIN(device.fetch(transaction), .wrong)
      let replies = try fixture.server.curl.race([
        Self.command(device, answer, to: transaction), (device.tokenArguments(device.loginForm()), nil),
      ])
      #expect(replies[0].slug == .pinIncorrect && replies[1].status == 200)
      // Either order is possible: one wrong attempt remains if it came after the correct one.
      let failures = try device.failureCounts()?.previousFailureCount
      #expect(failures == 0 || failures == 1)
      #expect(replies[0].counts[1] == 1)
      try device.logInWithPIN().expect(200)
    }
  }

  @Test("The same answer eight times at once") func theSameAnswerEightTimesAtOnce() throws {
    let (fixture, device) = try PINFixture.enrolled()
    let transaction = try fixture.ask(device)
    let (answer, key) = (try device.answerWithPIN(device.fetch(transaction), .wrong), Random.uuid())
    let commands = try (0..<8).map { _ in try Self.command(device, answer, to: transaction, key: key) }
    let replies = try fixture.server.curl.race(commands)
    #expect(Set(replies.map(\.body)).count == 1)
    #expect(replies[0].counts == [3, 1, 2])
    #expect(try device.failureCounts()?.previousFailureCount == 1)
  }

  /// A trigger or an index in the server's database makes every reply fail, so that kill -9 happens between count and
  /// reply.
  private func killBetweenCountAndVerdict(
    _ fixture: PINFixture, _ send: () throws -> Curl.Reply
  ) throws -> PINFixture {
    let (fail, succeed, error) = TestDeployment.usesPostgreSQL ? Self.failingDeletion : try Self.failingIndex(fixture)
    try fixture.server.query(fail)
    #expect(try send().status == 500)
    #expect(fixture.server.log.contains(error))
    _ = fixture.server.stop(killing: true)
    try fixture.server.query(succeed)
    return try PINFixture(after: fixture)
  }

  private static let failingDeletion = (
    """
    CREATE OR REPLACE FUNCTION fail() RETURNS TRIGGER LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'killed here'; END $$;
    CREATE TRIGGER no_verdict BEFORE DELETE ON pin_attempt FOR EACH ROW EXECUTE FUNCTION fail()
    """, "DROP TRIGGER no_verdict ON pin_attempt", "killed here"
  )

  /// The server disables triggers in a SQLite file. For new rows, the expression of this index is no JSON.
  private static func failingIndex(_ fixture: PINFixture) throws -> (String, String, String) {
    let latest = try fixture.server.query("SELECT COALESCE(MAX(created_at_ms), 0) FROM verdict")
    return (
      "CREATE INDEX no_verdict ON verdict (json(idempotency_key || '{')) WHERE created_at_ms > \(latest)",
      "DROP INDEX no_verdict", "malformed JSON"
    )
  }

  @Test("An answer killed between count and verdict", arguments: [true, false])
  func anAnswerKilledBetweenCountAndVerdict(isRight: Bool) throws {
    let (first, device) = try PINFixture.enrolled()
    let transaction = try first.ask(device)
    let fetched = try device.fetch(transaction)
    let (answer, key) = (try device.answerWithPIN(fetched, isRight ? nil : .wrong), Random.uuid())
    let fixture = try killBetweenCountAndVerdict(first) { try device.send(answer, to: transaction, key: key) }
    #expect(try device.failureCounts()?.previousFailureCount == 1)
    // Another answer with the same key is not verified; the same answer is, and is not counted again.
    #expect(try device.send(device.answerWithPIN(fetched), to: transaction, key: key).slug == .idempotencyConflict)
    let reply = try device.send(answer, to: transaction, key: key)
    #expect(reply.status == (isRight ? 200 : 422))
    #expect(reply.counts == (isRight ? [nil, nil, nil] : [3, 1, 2]))
    #expect(try device.failureCounts()?.previousFailureCount == (isRight ? 0 : 1))
    #expect(try device.send(answer, to: transaction, key: key).body == reply.body)
    #expect(try fixture.result(transaction)["used_authentication_attempts"] as? Int == 1)
  }

  @Test("Another answer counts on") func anotherAnswerCountsOn() throws {
    let (first, device) = try PINFixture.enrolled()
    let transaction = try first.ask(device)
    let fetched = try device.fetch(transaction)
    let fixture = try killBetweenCountAndVerdict(first) {
      try device.send(device.answerWithPIN(fetched, .wrong), to: transaction)
    }
    let reply = try device.send(device.answerWithPIN(fetched, .wrong), to: transaction)
    #expect(reply.counts == [3, 2, 1])
    _ = fixture
  }

  @Test("A login killed between count and verdict") func aLoginKilledBetweenCountAndVerdict() throws {
    let (first, device) = try PINFixture.enrolled()
    let (lost, repeated) = (
      try device.assertion("/oauth/token", .wrong), try device.assertion("/oauth/token", .wrong)
    )
    let second = try killBetweenCountAndVerdict(first) { try device.logInWithPIN(assertion: lost) }
    let third = try killBetweenCountAndVerdict(second) { try device.logInWithPIN(assertion: repeated) }
    #expect(try device.failureCounts()?.previousFailureCount == 2)
    #expect(try device.logInWithPIN(assertion: repeated).counts == [3, 2, 1])
    // The correct PIN clears the count, also of the attempt without a reply: that one is counted again.
    try device.logInWithPIN().expect(200)
    #expect(try device.failureCounts()?.previousFailureCount == 0)
    #expect(try device.logInWithPIN(assertion: lost).counts == [3, 1, 2])
    _ = third
  }

  @Test("The same login eight times at once") func theSameLoginEightTimesAtOnce() throws {
    let (fixture, device) = try PINFixture.enrolled()
    let assertion = try device.assertion("/oauth/token", .wrong)
    let commands = try (0..<8).map { _ -> Curl.Command in
      (try device.tokenArguments(device.loginForm(assertion: assertion)), nil)
    }
    let replies = try fixture.server.curl.race(commands)
    #expect(replies.allSatisfy { $0.counts == [3, 1, 2] })
  }

  @Test("Two commits at once") func twoCommitsAtOnce() throws {
    let (fixture, device) = try PINFixture.enrolled()
    let change = try #require(try device.beginPINChange().change)
    let path = "/device/v1/profiles/PROF01/pin-changes/\(change.id)/commit"
    let commands = try (0..<4).map { _ -> Curl.Command in
      let assertion = try device.assertion(path, change.refreshToken, nonce: change.id)
      return (try device.arguments("POST", path), JSON.encode(PINChangeCommit(assertion: assertion)))
    }
    #expect(try fixture.server.curl.race(commands).allSatisfy { $0.status == 204 })
    try device.logInWithPIN(change.refreshToken).expect(200)
  }
}
