// SPDX-License-Identifier: Apache-2.0
import JSONValues
import Synchronization
import Testing

@testable import TestAM

/// The behavior of its endpoint and its nodes.
extension StandInTests {
  @Test("Answers what is no request of a device's as its endpoint does")
  func answersWhatIsNoRequestOfADevicesAsItsEndpointDoes() {
    let body = ["messageId": JSONValue.text("AUTHENTICATE:1"), "jwt": .text("a.b.c")]
    #expect(post("authenticate", body) == 400, "an unknown id")
    #expect(post("authenticate", body, version: nil) == 400)
    #expect(post("authenticate", body, version: "resource=2.0") == 404)
    #expect(post("authenticate", body, version: "protocol=3.0") == 400)
    #expect(post("query", body) == 501)
    #expect(post("authenticate", ["jwt": .text("a.b.c")]) == 400)
    #expect(post("authenticate", ["messageId": .text("no-prefix"), "jwt": .text("a.b.c")]) == 500)
    #expect(post("refresh", body, to: Self.make(.am800, clock)) == 501)
    #expect(post("refresh", body) == 400)
    let json = ["content-type": "application/json"]
    let target = "\(Self.path)?_action=authenticate"
    for method in ["GET", "PUT", "PATCH", "DELETE"] {
      #expect(am.respond(method: method, target: target, headers: json, body: []).status == 501)
    }
    let long = "/am/json/realms/root/realms/alpha/push/sns/message?_action=authenticate"
    #expect(am.respond(method: "GET", target: long, headers: json, body: []).status == 501)
    am.set(hasPushService: false)
    #expect(post("authenticate", body) == 404, "no push service")
    #expect(am.respond(method: "POST", target: target, headers: json, body: Array("[]".utf8)).status == 400)
    #expect(am.respond(method: "POST", target: target, headers: [:], body: Array("{}".utf8)).status == 400)
    #expect(am.respond(method: "POST", target: "/am/json/beta/x", headers: json, body: []).status == 404)
  }

  @Test(
    "Checks an answer by its claims",
    arguments: [
      ([:], 200, TestAM.Outcome.isTrue), (["deny": .bool(true)], 200, .isFalse),
      (["deny": .bool(false)], 200, .isFalse),
      (["deny": .null], 200, .isTrue), (["response": .text("x")], 400, .waiting),
      (["response": .integer(1)], 500, .waiting),
      (["challengeResponse": .text("4.2")], 500, .waiting), (["challengeResponse": .null], 200, .isTrue),
      (["exp": .integer(0), "nbf": .integer(.max)], 200, .isTrue),
    ] as [([String: JSONValue], Int, TestAM.Outcome)])
  func checksAnAnswerByItsClaims(claims: [String: JSONValue], status: Int, outcome: TestAM.Outcome) throws {
    let secret = try enrolled()
    let push = try #require(am.send("ann"))
    #expect(try answer(push, secret, adding: claims) == status)
    #expect(am.verify(push) == outcome)
  }

  @Test("Counts what a balancer would lead elsewhere, and has another cookie for each message")
  func countsWhatABalancerWouldLeadElsewhereAndHasAnotherCookieForEachMessage() throws {
    let secret = try enrolled()
    let (one, other) = (try #require(am.send("ann")), try #require(am.send("ann")))
    #expect(one.cookie != other.cookie && one.cookie != "amlbcookie=01")
    let before = am.strays
    #expect(try answer(one, secret) == 200, "it is only counted")
    #expect(am.strays == before + 1)
  }

  @Test("Takes a missing number for the right one, and a wrong signature for none")
  func takesAMissingNumberForTheRightOneAndAWrongSignatureForNone() throws {
    let secret = try enrolled()
    let push = try #require(am.send("ann", .challenge))
    #expect(try answer(push, [UInt8](repeating: 1, count: 32)) == 400)
    #expect(try answer(push, secret) == 200)
    #expect(am.verify(push, type: .challenge) == .isTrue)
  }

  @Test("Counts the last answer, until it is consumed or too old") func countsTheLastAnswerUntilItIsConsumedOrTooOld()
    throws
  {
    let secret = try enrolled()
    let push = try #require(am.send("ann", timeout: 300))
    #expect(try answer(push, secret, adding: ["deny": .bool(true)]) == 200)
    #expect(try answer(push, secret) == 200)
    #expect(am.verify(push) == .isTrue)
    #expect(try answer(push, secret) == 400, "used up")
    let late = try #require(am.send("ann", timeout: 300))
    clock.now.withLock { $0 += 120_001 }
    #expect(try answer(late, secret) == 400, "AM forgets sooner than it promises")
    #expect(am.verify(late) == .expired)
  }

  @Test("Waits from its first poll on, and takes an answer that it does not wait for any more")
  func waitsFromItsFirstPollOnAndTakesAnAnswerThatItDoesNotWaitForAnyMore() throws {
    let secret = try enrolled()
    let push = try #require(am.send("ann", timeout: 30))
    clock.now.withLock { $0 += 20_000 }
    #expect(am.verify(push) == .waiting)
    clock.now.withLock { $0 += 30_000 }
    #expect(am.verify(push) == .waiting)
    clock.now.withLock { $0 += 1 }
    #expect(am.verify(push) == .expired)
    #expect(try answer(push, secret) == 200)
  }

  @Test("Has the quirks of its version", arguments: TestAM.Version.allCases) func hasTheQuirksOfItsVersion(
    version: TestAM.Version
  ) throws {
    let am = Self.make(version, clock)
    let uri = am.registrationURI("ann", issuer: "A:B")
    #expect(uri.hasPrefix(version >= .am73 ? "pushauth://push/A:B:ann?" : "pushauth://push/forgerock:ann?"))
    let namesThePerson = try parameters(of: uri)["uid"] != nil
    #expect(namesThePerson == (version >= .am801))
    if version >= .am73 {
      let both = try parameters(of: am.registrationURI("ann", oath: "secret=MFRGGZDF&period=30"))
      #expect((both["oid"] != nil) == (version >= .am801))
    }
    _ = try enrolled(at: am)
    for (type, category) in [
      (TestAM.PushType.plain, "authentication"), (.challenge, "authentication_challenge"),
      (.biometric, "authentication_biometric"),
    ] {
      let push = try #require(am.send("ann", type))
      let form = try #require(JSONValue(parsing: am.amazonForm(of: push)))
      let google = try #require(form["GCM"]?.text), apple = try #require(form["APNS"]?.text)
      #expect(google.contains(#""PRIORITY""#) == (version <= .am800))
      #expect(apple.contains(#""category":"\#(category)""#))
      #expect(apple.contains("mutable-content") == (version >= .am73))
    }
  }
}
