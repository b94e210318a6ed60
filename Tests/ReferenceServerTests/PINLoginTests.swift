// SPDX-License-Identifier: Apache-2.0
import Cryptography
import Foundation
import ReferenceProtocol
import Secrets
import ServerTestSupport
import Testing

/// The `jwt-bearer` grant, against the running server.
@Suite(.timeLimit(.minutes(5)), .mayBlock) struct PINLoginTests {
  let fixture: PINFixture
  let device: DeviceClient

  init() throws {
    (fixture, device) = try PINFixture.enrolled()
  }

  @Test("The right PIN gives a user token") func theRightPINGivesAUserToken() throws {
    let response = try device.logInWithPIN().expect(200).decoded(AccessTokenResponse.self)
    #expect(response.scope == .user && response.profileID == "PROF01" && response.expiresIn == 900)
    #expect(response.sealedToken == nil)
    // It is a user token: only a user may enroll for push.
    try device.enrollForPush().expect(200)
  }

  @Test("A wrong PIN counts until the user is gone") func aWrongPINCountsUntilTheUserIsGone() throws {
    for failures in 1...2 {
      let reply = try device.logInWithPIN(.wrong)
      #expect(reply.status == 400 && reply.json["error"] as? String == "invalid_grant")
      #expect(reply.errorCode == 9009 && reply.counts == [3, failures, 3 - failures])
    }
    #expect(
      try device.failureCounts() == ProfileFailureCounts(profileID: "PROF01", max: 3, previous: 2))
    // Cleared by the correct PIN.
    try device.logInWithPIN().expect(200)
    #expect(try device.failureCounts()?.previousFailureCount == 0)
    let cursor = try device.events(after: nil)?.cursor
    let assertion = try device.assertion("/oauth/token", .wrong)
    for _ in 1...2 { try device.logInWithPIN(.wrong).expect(400) }
    let last = try device.logInWithPIN(assertion: assertion)
    #expect(last.status == 400 && last.errorCode == 9003 && last.counts == [3, 3, 0])
    #expect(try device.events(after: cursor)?.events == [DeviceEvent(.profileRevoked, profileID: "PROF01")])
    // The same attempt gets the same reply; any other attempt gets "user deregistered", even with the correct PIN.
    #expect(try device.logInWithPIN(assertion: assertion).counts == [3, 3, 0])
    #expect(try device.logInWithPIN().errorCode == 9003)
    let token = device.userToken
    #expect(try device.call("PUT", "/device/v1/profiles/PROF01/push", token: token).status == 401)
    for table in ["knowledge", "pin_attempt", "pin_change"] {
      #expect(try fixture.server.count(table) == 0, "\(table)")
    }
  }

  @Test("The same assertion is the same attempt") func theSameAssertionIsTheSameAttempt() throws {
    let wrong = try device.assertion("/oauth/token", .wrong, identifier: "one")
    for _ in 1...4 {
      let reply = try device.logInWithPIN(assertion: wrong)
      #expect(reply.errorCode == 9009 && reply.counts == [3, 1, 2])
    }
    // Another signature with the same jti is neither a repetition nor a new attempt.
    let other = try device.assertion("/oauth/token", identifier: "one")
    #expect(try device.logInWithPIN(assertion: other).errorCode == 10015)
    let right = try device.assertion("/oauth/token")
    let tokens = try (1...2).map { _ in
      try device.logInWithPIN(assertion: right).expect(200).decoded(AccessTokenResponse.self).accessToken
    }
    #expect(tokens[0] != tokens[1])
    #expect(try device.failureCounts()?.previousFailureCount == 0)
  }

  typealias Change = @Sendable (inout KnowledgeAssertion.Claims) -> Void

  static let changes: [(String, Int, Change)] = [
    ("iss", 10015, { $0.iss = "x" }), ("sub", 10015, { $0.sub = "OTHER1" }), ("aud", 10015, { $0.aud += "/x" }),
    ("jti", 10015, { $0.jti = "" }), ("nonce", 10015, { $0.nonce = "x" }), ("lifetime", 10015, { $0.exp += 3600 }),
    (
      "clock", 9031,
      {
        $0.iat -= 3600; $0.exp -= 3600
      }
    ),
  ]

  @Test("What is no attempt is not counted") func whatIsNoAttemptIsNotCounted() throws {
    for (name, code, change) in Self.changes {
      let reply = try device.logInWithPIN(assertion: device.assertion("/oauth/token", .wrong, change: change))
      #expect(reply.status == 400 && reply.errorCode == code, "\(name)")
    }
    for nonsense in ["", "x", "a.b.c", "e30.e30.AAAA"] {
      #expect(try device.logInWithPIN(assertion: nonsense).status == 400)
    }
    #expect(try device.failureCounts()?.previousFailureCount == 0)
  }

  @Test("Two tokens of one user count apart") func twoTokensOfOneUserCountApart() throws {
    let other = try DeviceClient.enrolledWithPIN(at: fixture.server, as: "alice")
    for _ in 1...3 { try device.logInWithPIN(.wrong).expect(400) }
    #expect(try device.logInWithPIN().errorCode == 9003)
    #expect(try other.failureCounts()?.previousFailureCount == 0)
    try other.logInWithPIN().expect(200)
  }

  @Test("Other devices use no attempts") func otherDevicesUseNoAttempts() throws {
    let stranger = try DeviceClient.enrolledWithPIN(at: fixture.server, as: "mallory")
    stranger.profileID = "PROF01"
    let claims = KnowledgeAssertion.Claims(
      clientID: device.clientID, profileID: "PROF01", audience: fixture.server.url + "/oauth/token", identifier: "x",
      now: Int64(Date().timeIntervalSince1970))
    let forged = try stranger.knowledgeKey(.wrong).assertion(claims)
    #expect(try stranger.logInWithPIN(assertion: forged).errorCode == 10015)
    let unknown = try stranger.token(
      ["grant_type=\(Grant.jwtBearer)", "assertion=\(forged)", "profile_id=NOBODY"])
    #expect(unknown.status == 400)
    #expect(try device.failureCounts()?.previousFailureCount == 0)
  }
}
