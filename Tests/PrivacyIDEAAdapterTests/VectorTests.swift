// SPDX-License-Identifier: Apache-2.0
import Cryptography
import HTTP
import JSONValues
import MobileAuth
import Secrets
import Testing

@testable import PrivacyIDEAAdapter

@Suite("The worked examples", .timeLimit(.minutes(5))) struct VectorTests {
  private let key = WorkedExamples.key

  private func pollElement() throws -> JSONValue {
    try #require(WorkedExamples.json("pollAnswer")["result"]?["value"]?.list?.first)
  }

  @Test("The public key is sent in the server's format") func publicKeyIsSentInTheServersFormat() {
    #expect(key.publicKeyOnTheWire == WorkedExamples["enrolmentPublicKey"])
  }

  @Test("The server's key is read from the enrollment's answer") func serversKeyIsReadFromTheEnrollmentsAnswer() throws
  {
    let reply = try #require(Reply(HTTPResponse(status: 200, body: Array(WorkedExamples["enrolmentAnswer"].utf8))))
    guard case .value(.bool(true), let detail?) = reply else {
      Issue.record("\(reply)")
      return
    }
    let sent = try #require(detail["public_key"]?.text)
    #expect(sent.contains("\n"))
    #expect(try RSAPublicKey(onTheWire: sent) == WorkedExamples.serverKey)
    #expect(WorkedExamples.serverKey.bits == 4096)
  }

  @Test("A poll is signed so") func pollIsSignedSo() throws {
    let form = WorkedExamples.form("pollQuery")
    #expect(try key.signatureOnTheWire(for: WorkedExamples["pollText"]) == form["signature"])
    #expect(WorkedExamples["pollText"] == "\(WorkedExamples.serial)|\(form["timestamp"]!)")
  }

  @Test("The challenge and its capabilities verify") func challengeAndItsCapabilitiesVerify() throws {
    let challenge = try PushChallenge(
      pollElement(), for: WorkedExamples.serial, verifiedWith: WorkedExamples.serverKey)
    #expect(challenge.nonce == "URO32X52CZN3FJKZRMEJU5PP7R5F5VDG")
    #expect(challenge.question == "Log in to the VPN as Alice?")
    #expect(challenge.title == "Example Corp")
    #expect(challenge.options == nil)
    #expect(challenge.takesReasons)
  }

  @Test("Capabilities are signed as canonical JSON") func capabilitiesAreSignedAsCanonicalJSON() throws {
    let read = JSONValue(parsing: Array(try #require(pollElement()["capabilities"]?.text).utf8))
    let signed = JSONValue.object([
      "nonce": .text("URO32X52CZN3FJKZRMEJU5PP7R5F5VDG"), "capabilities": try #require(read),
    ])
    #expect(signed.canonical == WorkedExamples["capabilitiesText"])
  }

  @Test("The presence challenge verifies and keeps its order") func presenceChallengeVerifiesAndKeepsItsOrder() throws {
    let challenge = try PushChallenge(
      WorkedExamples.json("presenceChallenge"), for: WorkedExamples.serial, verifiedWith: WorkedExamples.serverKey)
    #expect(challenge.options == ["M", "H", "A"])
  }

  @Test(
    "The server has signed exactly these texts",
    arguments: [
      ("challengeText", "pollAnswer", "signature"), ("capabilitiesText", "pollAnswer", "capabilities_signature"),
      ("presenceChallengeText", "presenceChallenge", "signature"), ("ecChallengeText", "ecChallenge", "signature"),
    ])
  func serverHasSignedExactlyTheseTexts(text: String, example: String, member: String) throws {
    let element = example == "pollAnswer" ? try pollElement() : WorkedExamples.json(example)
    let key = example == "ecChallenge" ? WorkedExamples.ellipticServerKey : WorkedExamples.serverKey
    let signature = try #require(element[member]?.text)
    #expect(key.isValidSignature(onTheWire: signature, for: WorkedExamples[text]))
    #expect(!key.isValidSignature(onTheWire: signature, for: WorkedExamples[text] + "\n"))
    #expect(!key.isValidSignature(onTheWire: signature.lowercased(), for: WorkedExamples[text]))
  }

  @Test(
    "Answers are signed and sent so",
    arguments: [
      (PushAnswer.accept(presence: nil), "accept"), (.decline(nil), "decline"), (.decline(.unknownTrigger), "reason"),
      (.accept(presence: "M"), "presence"),
    ])
  func answersAreSignedAndSentSo(answer: PushAnswer, name: String) throws {
    let nonce = String(WorkedExamples[name + "Text"].prefix(32))
    #expect(answer.signedText(nonce: nonce, serial: WorkedExamples.serial) == WorkedExamples[name + "Text"])
    let body = try answer.body(nonce: nonce, serial: WorkedExamples.serial, key: key)
    let expected = WorkedExamples.form(name + "Body").mapValues { JSONValue.text($0) }
    #expect(JSONValue(parsing: body) == .object(expected))
  }

  /// This token has no push address to change; the signature has the same form.
  @Test("A change of the push address is signed so") func changeOfThePushAddressIsSignedSo() throws {
    let form = WorkedExamples.form("addressBody")
    let text = WorkedExamples["addressText"]
    #expect(text == [form["new_fb_token"]!, form["serial"]!, form["timestamp"]!].joined(separator: "|"))
    #expect(try key.signatureOnTheWire(for: text) == form["signature"])
  }

  @Test("What the server says to an accept, with and without a code for the portal")
  func whatTheServerSaysToAnAcceptWithAndWithoutACodeForThePortal() throws {
    for (name, code) in [("acceptAnswer", String?.none), ("codeAnswer", "63")] {
      let reply = Reply(HTTPResponse(status: 200, body: Array(WorkedExamples[name].utf8)))
      guard case .value(.bool(true), let detail)? = reply else {
        Issue.record("\(name): \(reply as Any)")
        return
      }
      #expect(detail?["display_code"]?.text == code)
    }
  }

  @Test("eduMFA's elliptic example verifies, both ways") func eduMFAsEllipticExampleVerifiesBothWays() throws {
    guard case .p256(let key) = WorkedExamples.ellipticKey else {
      Issue.record("not P-256")
      return
    }
    let challenge = try PushChallenge(
      WorkedExamples.json("ecChallenge"), for: "EDUP0000F077", verifiedWith: WorkedExamples.ellipticServerKey)
    #expect(challenge.nonce == "Y3XAWHOOWWI2RIUVDZQKSSJYWME4OGGK")
    #expect(!challenge.takesReasons)
    // The example's signature has the same form as this token's: DER in Base32.
    for (text, signature) in [
      (WorkedExamples["ecPollText"], WorkedExamples["ecPollSignature"]),
      (WorkedExamples["ecAcceptText"], WorkedExamples.form("ecAcceptBody")["signature"]!),
      (
        WorkedExamples["ecAcceptText"],
        try WorkedExamples.ellipticKey.signatureOnTheWire(for: WorkedExamples["ecAcceptText"])
      ),
    ] {
      #expect(key.publicKey.isValidDERSignature(try #require(bytes(base32: signature)), for: Array(text.utf8)))
    }
  }

  /// The rows of the error table, as bytes if they have any.
  @Test(
    "Error answers to a poll",
    arguments: [
      ("staleAnswer", Duration?.some(.seconds(90)), PollError.clock(.seconds(90))),
      ("wrongSignatureAnswer", .seconds(1), .notKnown), ("staleAnswer", nil, .clock(nil)),
    ])
  func errorAnswersToAPoll(name: String, drift: Duration?, fault: PollError) {
    let response = HTTPResponse(status: 400, body: Array(WorkedExamples[name].utf8))
    #expect(PollError(response, drift: drift) == fault)
  }
}
