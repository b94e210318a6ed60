// SPDX-License-Identifier: Apache-2.0
import Cryptography
import JSONValues
import MobileAuth
import RegistrationURIs
import Secrets
import ServerBackends
import Testing

@testable import PingAMAdapter

@Suite("The vectors", .timeLimit(.minutes(5))) struct VectorTests {
  /// The key that signs all vectors except the first.
  static let secret = SharedSecret(
    bytes: SecretBytes(copying: bytes(hex: Vectors.all("challenge-answers")[1]["secret_hex"]!.text!)))

  static func bytes(hex: String) -> [UInt8] {
    let digits = Array(hex)
    return stride(from: 0, to: digits.count, by: 2).map { UInt8(String(digits[$0...($0 + 1)]), radix: 16)! }
  }

  /// Header and claims of a token signed with the secret.
  private static func parts(of token: String) throws -> (header: JSONValue?, claims: JSONValue?) {
    let parsed = try JWS.Unverified(parsing: token)
    return (
      JSONValue(parsing: parsed.header), JSONValue(parsing: try parsed.payload(authenticatedBy: secret.bytes))
    )
  }

  @Test("Challenges are answered", arguments: Vectors.all("challenge-answers")) func challengesAreAnswered(
    vector: JSONValue
  ) throws {
    func text(_ name: String) throws -> String { try #require(vector[name]?.text) }
    let secret = SharedSecret(bytes: SecretBytes(copying: Self.bytes(hex: try text("secret_hex"))))
    let challenge = Self.bytes(hex: try text("challenge_hex"))
    #expect(secret.answer(to: challenge) == (try text("response")))
    for name in ["challenge_base64", "challenge_base64url"] {
      #expect(RegistrationURIs.bytes(lenientBase64: try text(name)) == challenge)
    }
    for name in ["secret_base64", "secret_base64url"] {
      #expect(RegistrationURIs.bytes(lenientBase64: try text(name)) == Self.bytes(hex: try text("secret_hex")))
    }
  }

  @Test("A registration says what it should") func registrationSaysWhatItShould() throws {
    let vector = Vectors.one("registration", "own-reg")
    let uri = try RegistrationURI(try #require(Vectors.one("registration-uris", "own-uri-8")["uri"]?.text))
    let ticket = try #require(uri.push)
    let mechanism = Mechanism(
      metadata: Mechanism.Metadata(
        uid: "5a0e7c1e-6b1d-4d6c-9a6e-2b8a0f6d1c11", issuer: uri.issuer, accountName: uri.accountName,
        registrationURL: ticket.registrationURL, authenticationURL: ticket.authenticationURL,
        deviceToken: "linux-token-1"),
      secret: SharedSecret(bytes: ticket.secret))
    let body = try #require(JSONValue(parsing: mechanism.registration(ticket, deviceName: "desk token")))
    #expect(body["messageId"] == vector["body"]?["messageId"])
    let (header, claims) = try Self.parts(of: try #require(body["jwt"]?.text))
    #expect(header == .object(["typ": .text("JWT"), "alg": .text("HS256")]))
    #expect(claims == vector["claims"])
    #expect(try Self.parts(of: try #require(vector["jwt"]?.text)).claims == vector["claims"])
    #expect(ticket.registrationURL == vector["url"]?.text)
  }

  /// From the text of a QR code to the codes.
  @Test("One-time passwords are made", arguments: Vectors.all("one-time-passwords")) func oneTimePasswordsAreMade(
    vector: JSONValue
  ) throws {
    func all(_ many: String, _ one: String) -> [JSONValue] {
      vector[many]?.list ?? [vector[one]].compactMap(\.self)
    }
    let secret = try #require(vector["secret_base32"]?.text), name = try #require(vector["algorithm"]?.text)
    let digits = try #require(vector["digits"]?.integer)
    let uri = try RegistrationURI("otpauth://totp/Example:ann?secret=\(secret)&algorithm=\(name)&digits=\(digits)")
    let credential = try #require(uri.oath)
    let algorithm = try #require(OneTimePassword.Algorithm(rawValue: credential.algorithm.rawValue))
    let factors = try all("moving_factors", "moving_factor").map { UInt64(try #require($0.integer)) }
    let codes = factors.map { factor in
      try? OneTimePassword.code(
        factor: factor, secret: credential.secret, algorithm: algorithm, digits: credential.digits)
    }
    guard vector["expect"] == nil else { return #expect(codes.allSatisfy { $0 == nil }) }
    #expect(!codes.isEmpty && codes == all("codes", "code").map { $0.text })
    if let time = vector["unix_time"]?.integer, let period = vector["period"]?.integer {
      #expect(factors == [UInt64(time / period)])
    }
  }

  @Test("Messages are read", arguments: Vectors.all("push-messages")) func messagesAreRead(vector: JSONValue) throws {
    let token = try PushMessage.token(try #require(vector["message"]?.text))
    let message = try PushMessage(token, verifiedWith: Self.secret)
    let claims = try #require(vector["claims"])
    let expected = try #require(vector["expect"])
    #expect(message.mechanismUID == claims["u"]?.text && message.challenge.base64 == claims["c"]?.text)
    #expect(message.text == claims["m"]?.text && message.context == claims["x"]?.text)
    #expect(message.payload == claims["p"]?.text && message.userID == claims["d"]?.text)
    #expect(message.cookie == "amlbcookie=01" && message.unknownKind == nil)
    let kinds: [String: PushMessage.Kind] = [
      "default": .confirmation, "challenge": .number([17, 42, 86]), "biometric": .biometric,
    ]
    #expect(message.kind == kinds[try #require(expected["pushType"]?.text)])
    if let sent = expected["timeAdded"]?.integer { #expect(message.sentAtMilliseconds == sent) }
    if expected["timeAdded"]?.text != nil { #expect(message.sentAtMilliseconds == nil) }
    if let end = expected["timeExpired"]?.integer {
      #expect((message.sentAtMilliseconds ?? 0) + message.timeToLive * 1000 == end)
    }
    if let life = expected["ttl"]?.integer { #expect(message.timeToLive == life) }
  }

  @Test("Messages are refused", arguments: Vectors.all("refused-messages")) func messagesAreRefused(vector: JSONValue)
    throws
  {
    let parseErrors: [String: PushMessage.ParseError?] = [
      "own-push-badsig": .forged, "own-push-unknown": nil, "own-push-ttl": .malformed("t"),
      "own-push-noc": .missing("c"), "own-push-none": .algorithm, "own-push-384": .algorithm,
    ]
    let token = try PushMessage.token(try #require(vector["message"]?.text))
    let id = try #require(vector["id"]?.text)
    let parseError = try #require(parseErrors[id])
    guard let parseError else {
      // Correctly signed, for a mechanism that is unknown here.
      return #expect(try PushMessage(token, verifiedWith: Self.secret).mechanismUID.hasPrefix("00000000-"))
    }
    #expect(throws: parseError) { try PushMessage(token, verifiedWith: Self.secret) }
  }

  @Test(
    "Answers say what they should",
    arguments: [
      ("own-auth-accept", "own-push-default", PushAnswer.accept(number: nil)),
      ("own-auth-accept", "own-push-legacy", .accept(number: nil)),
      ("own-auth-accept", "own-push-biometric", .accept(number: nil)),
      ("own-auth-deny", "own-push-default", .deny), ("own-auth-deny", "own-push-legacy", .deny),
      ("own-auth-deny", "own-push-biometric", .deny), ("own-auth-number", "own-push-challenge", .accept(number: "42")),
      ("own-auth-number-deny", "own-push-challenge", .deny),
    ])
  func answersSayWhatTheyShould(answer: String, push: String, decision: PushAnswer) throws {
    let vector = Vectors.one("answers", answer)
    let token = try PushMessage.token(try #require(Vectors.one("push-messages", push)["message"]?.text))
    let message = try PushMessage(token, verifiedWith: Self.secret)
    let claims = decision.claims(response: Self.secret.answer(to: message.challenge))
    #expect(JSONValue.object(claims) == vector["claims"])
    #expect(try Self.parts(of: Self.secret.token(claims)).claims == vector["claims"])
    #expect(try Self.parts(of: try #require(vector["jwt"]?.text)).claims == vector["claims"])
  }
}
