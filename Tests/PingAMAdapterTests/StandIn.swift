// SPDX-License-Identifier: Apache-2.0
import Cryptography
import JSONValues
import Secrets
import Synchronization
import Testing

@testable import TestAM

/// The stand-in for AM behaves like AM's published source, including its quirks, for any input.
@Suite("The stand-in for AM", .timeLimit(.minutes(5))) struct StandInTests {
  let clock = Clock()
  let am: TestAM

  final class Clock: Sendable {
    let now = Mutex<Int64>(1_790_000_000_000)
  }

  init() { am = Self.make(.am802, clock) }

  static func make(_ version: TestAM.Version, _ clock: Clock) -> TestAM {
    TestAM(version, base: "https://am.example/am", realm: "alpha") { clock.now.withLock { $0 } }
  }

  static let path = "/am/json/alpha/push/sns/message"

  func post(
    _ action: String, _ body: [String: JSONValue], to am: TestAM? = nil, version: String? = "resource=1.0, protocol=1.0"
  ) -> Int {
    var headers = ["content-type": "application/json"]
    headers["accept-api-version"] = version
    return (am ?? self.am).respond(
      method: "POST", target: "\(Self.path)?_action=\(action)", headers: headers,
      body: Array(JSONValue.object(body).canonical.utf8)
    ).status
  }

  func token(
    _ claims: [String: JSONValue], _ secret: [UInt8], header: String = #"{"alg":"HS256","typ":"JWT"}"#,
    by algorithm: SignedToken.Algorithm = .hs256
  ) -> JSONValue {
    let text = "\(Array(header.utf8).base64URL).\(Array(JSONValue.object(claims).canonical.utf8).base64URL)"
    return .text("\(text).\(algorithm.tag(Array(text.utf8), secret).base64URL)")
  }

  /// The parameters of the URI, parsed without the adapter.
  func parameters(of uri: String) throws -> [String: String] {
    let query = try #require(uri.split(separator: "?", maxSplits: 1).last)
    return Dictionary(
      uniqueKeysWithValues: query.split(separator: "&").map { pair in
        let parts = pair.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
        return (String(parts[0]), parts.count > 1 ? String(parts[1]) : "")
      })
  }

  /// The body that a device posts to register, and its secret.
  /// - Parameter claims: replace the claims of a device; null for no claims.
  func registration(
    at am: TestAM, _ claims: [String: JSONValue] = [:]
  ) throws -> (body: [String: JSONValue], secret: [UInt8]) {
    let uri = try parameters(of: am.registrationURI("ann"))
    let secret = try #require(uri["s"].flatMap(bytes(base64URL:)))
    let challenge = try #require(uri["c"].flatMap(bytes(base64URL:)))
    var all: [String: JSONValue] = [
      "response": .text(HMACSHA256.authenticate(challenge, key: SecretBytes(copying: secret)).base64),
      "mechanismUid": .text("uid"), "deviceId": .text("d"), "communicationType": .text("gcm"),
    ]
    for (name, value) in claims { all[name] = value == .null ? nil : value }
    return (["messageId": .text(try #require(uri["m"])), "jwt": token(all, secret)], secret)
  }

  /// A user with a device, and its secret.
  func enrolled(at am: TestAM? = nil) throws -> [UInt8] {
    let am = am ?? self.am
    let (body, secret) = try registration(at: am)
    // The message ID identifies the operation, not the action.
    #expect(post("authenticate", body, to: am) == 200)
    #expect(post("register", body, to: am) == 400, "spent")
    #expect(am.finishRegistration(of: "ann")?.deviceName == "Push Device")
    return secret
  }

  /// AM's response to an approval of its push, with the given claims.
  func answer(
    _ push: TestAM.Push, _ secret: [UInt8], adding claims: [String: JSONValue] = [:],
    header: String = #"{"alg":"HS256","typ":"JWT"}"#, by algorithm: SignedToken.Algorithm = .hs256
  ) throws -> Int {
    let payload = push.message.split(separator: ".")[1]
    let reported = try #require(bytes(base64URL: String(payload)).flatMap(JSONValue.init(parsing:)))
    let challenge = try #require(reported["c"]?.text.flatMap(bytes(base64:)))
    var all = claims
    if all["response"] == nil {
      all["response"] = .text(HMACSHA256.authenticate(challenge, key: SecretBytes(copying: secret)).base64)
    }
    let jwt = token(all, secret, header: header, by: algorithm)
    return post("authenticate", ["messageId": .text(push.messageID), "jwt": jwt])
  }
}
