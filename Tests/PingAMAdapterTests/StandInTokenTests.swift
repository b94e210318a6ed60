// SPDX-License-Identifier: Apache-2.0
import JSONValues
import Synchronization
import Testing

@testable import TestAM

/// The verification of signed device messages.
extension StandInTests {
  /// Computed with Python's hmac; the key is 64 bytes starting at 0.
  private static let signed = [
    "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJyZXNwb25zZSI6IngifQ.e8o0A2owZZXZxZmANQb3upfuuSMtdzfSmSvU7kUhI_k",
    "eyJhbGciOiJIUzM4NCIsInR5cCI6IkpXVCJ9.eyJyZXNwb25zZSI6IngifQ.UgcEZ2wN_EsmBtil5_Q5R50pRWBbn-n7P7DM7r2gyrFVFxxj7ZcnCb"
      + "S3HovkqxFK",
    "eyJhbGciOiJIUzUxMiIsInR5cCI6IkpXVCJ9.eyJyZXNwb25zZSI6IngifQ.0raGDLtCXoSxFl_P142g9lXYOAmGbqriHWXXgDL0bOZoEPAJoAUMup"
      + "SCzF8jVn_HK8B8zFRDMVZV_lQAmqnUGQ",
  ]

  @Test("Accepts the header's choice of three algorithms") func acceptsTheHeadersChoiceOfThreeAlgorithms() throws {
    for text in Self.signed {
      let token = try SignedToken(text)
      #expect(token.isSigned(with: [UInt8](0..<64)) && token.claims["response"] == .text("x"))
      #expect(!token.isSigned(with: [UInt8](1..<65)))
    }
    let secret = try enrolled()
    for algorithm in SignedToken.Algorithm.allCases {
      let push = try #require(am.send("ann"))
      let header = #"{"alg":"\#(algorithm.rawValue)","typ":"JWT"}"#
      #expect(try answer(push, secret, header: header, by: algorithm) == 200)
      #expect(am.verify(push) == .isTrue)
    }
  }

  @Test(
    "Has its own mind about headers",
    arguments: [
      (#"{"alg":"HS256","typ":"JWS"}"#, 200), (#"{"typ":"JWE","alg":"HS256"}"#, 200),
      (#"{"alg":"HS384","typ":"JWT"}"#, 400), (#"{"alg":"HS256"}"#, 500), (#"{"alg":"HS256","typ":"JOSE"}"#, 500),
      (#"{"typ":"JWT"}"#, 500), (#"{"alg":"none","typ":"JWT"}"#, 500), (#"{"alg":"RS256","typ":"JWT"}"#, 500),
      (#"{"alg":"ES256","typ":"JWT"}"#, 500), (#"{"alg":"HS256","typ":"JWT","\u0061lg":"HS256"}"#, 500),
      (#"["alg"]"#, 500), ("{", 500),
      (#"{"alg":"HS256","typ":"JWT","a":{"b":1,"b":1}}"#, 500),
      (#"{"alg":"HS256","typ":"JWT","a":{"alg":["typ"]}}"#, 200),
    ])
  func hasItsOwnMindAboutHeaders(header: String, status: Int) throws {
    let secret = try enrolled()
    let push = try #require(am.send("ann"))
    #expect(try answer(push, secret, header: header) == status)
  }

  @Test("Fails over what is no token", arguments: ["", "a.b", "e30.e30", "e30.e30.e30.e30", "!.!.!", "e30=.e30.e30"])
  func failsOverWhatIsNoToken(text: String) throws {
    _ = try enrolled()
    let push = try #require(am.send("ann"))
    #expect(post("authenticate", ["messageId": .text(push.messageID), "jwt": .text(text)]) == 500)
  }

  @Test(
    "Registers every device that the push provider accepts",
    arguments: [
      (["mechanismUid": .null], 200), (["deviceId": .null], 400), (["deviceId": .text("")], 400),
      (["communicationType": .null], 500), (["communicationType": .text("pigeon")], 200),
      (["response": .null], 500), (["response": .text("x")], 400), (["deviceName": .text("mine")], 200),
    ] as [([String: JSONValue], Int)])
  func registersEveryDeviceThatThePushProviderAccepts(claims: [String: JSONValue], status: Int) throws {
    let (body, _) = try registration(at: am, claims)
    #expect(post("register", body) == status)
    let profile = am.finishRegistration(of: "ann")
    #expect((profile != nil) == (status == 200))
    guard let profile else { return }
    #expect(profile.deviceName == "Push Device")
    #expect(profile.mechanismUID == (claims["mechanismUid"] == nil ? "uid" : nil))
    _ = try #require(am.send("ann"))
  }

  @Test("Refuses whom the push provider refuses") func refusesWhomThePushProviderRefuses() throws {
    am.set(providerRefuses: true)
    let (body, _) = try registration(at: am)
    #expect(post("register", body) == 400)
    am.set(providerRefuses: false)
    let secret = try enrolled()
    func refresh(_ jwt: JSONValue) -> Int {
      post("refresh", ["mechanismUid": .text("uid"), "username": .text("uid-of-ann"), "jwt": jwt])
    }
    let claims: [String: JSONValue] = [
      "deviceId": .text("new"), "communicationType": .text("gcm"), "deviceType": .text("android"),
      "deviceName": .text("desk"),
    ]
    am.set(providerRefuses: true)
    #expect(refresh(token(claims, secret)) == 400)
    am.set(providerRefuses: false)
    #expect(refresh(token(claims, [UInt8](repeating: 1, count: 32))) == 400)
    // A registration would fail because of it.
    #expect(refresh(.text("a.b")) == 400)
    #expect(am.profiles.map(\.deviceID) == ["d"])
    #expect(refresh(token(claims, secret)) == 200)
    #expect(am.profiles.map(\.deviceID) == ["new"] && am.profiles.map(\.deviceName) == ["desk"])
    #expect(am.profiles.map(\.deviceType) == ["android"])
  }

  @Test("Accepts a registration that its node no longer waits for")
  func acceptsARegistrationThatItsNodeNoLongerWaitsFor() throws {
    let (body, _) = try registration(at: am)
    clock.now.withLock { $0 += 60_001 }
    #expect(post("register", body) == 200)
    #expect(am.finishRegistration(of: "ann") == nil && am.send("ann")?.messageID == nil)
  }
}
