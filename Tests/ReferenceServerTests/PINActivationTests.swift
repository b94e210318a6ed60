// SPDX-License-Identifier: Apache-2.0
import Cryptography
import Foundation
import OpenPGP
import ReferenceProtocol
import Secrets
import ServerTestSupport
import Testing

/// From an activation code to an active PIN, against the running server.
@Suite(.timeLimit(.minutes(5)), .mayBlock) struct PINActivationTests {
  let fixture: PINFixture
  let device: DeviceClient
  let code: String

  init() throws {
    fixture = try PINFixture()
    device = try DeviceClient(fixture.server)
    code = try fixture.server.activationCode(for: "alice")
    try device.register(code).expect(201)
  }

  @Test("The device receives the policy") func deviceReceivesThePolicy() throws {
    try device.logIn().expect(200)
    let configuration = try device.call("GET", "/device/v1/configuration").decoded(DeviceConfiguration.self)
    #expect(configuration.pinRequired)
    #expect(
      configuration.pinPolicy
        == PINPolicyDescription(
          length: 5, maxRepeats: nil, sequencesAllowed: false, blockList: [], maxFailureCount: 3))
  }

  @Test("A certificate for the exchange is needed", arguments: [nil, "", "x", "AAAA"])
  func aCertificateForTheExchangeIsNeeded(certificate: String?) throws {
    let reply = try device.token(
      ["grant_type=\(Grant.preAuthorizedCode)", "pre-authorized_code=\(code)", "profile_id=PROF01"]
        + (certificate.map { ["ephemeral_certificate=\($0)"] } ?? []))
    #expect(reply.status == 400 && reply.json["error"] as? String == "invalid_request")
    // The code is not used up by it.
    try device.activateForPIN(code).expect(200)
  }

  @Test("The refresh token is given until the PIN is chosen") func theRefreshTokenIsGivenUntilThePINIsChosen() throws {
    try device.activateForPIN(code).expect(200)
    let (first, firstNonce) = (try #require(device.refreshToken), device.pinNonce)
    #expect(first.count == 32)
    try device.activateForPIN(code).expect(200)
    let second = try #require(device.refreshToken)
    #expect(!SecretBytes.constantTimeEqual(first, second))
    // The first refresh token became invalid when the second was created.
    let path = "/device/v1/profiles/PROF01/pin"
    let stale = try device.activatePIN(try device.assertion(path, first, nonce: firstNonce))
    #expect(stale.slug == .invalidRequest)
    let activation = try device.assertion(path, nonce: device.pinNonce)
    try device.activatePIN(activation).expect(204)
    try device.activatePIN(activation).expect(204)
    let after = try device.activateForPIN(code).expect(200).decoded(AccessTokenResponse.self)
    #expect(after.sealedToken == nil && after.serverCertificate == nil && after.pinNonce == nil)
    try device.logInWithPIN(second).expect(200)
  }

  @Test("An active PIN cannot be asked there") func anActivePINCannotBeAskedThere() throws {
    try device.activateForPIN(code).expect(200)
    let nonce = device.pinNonce
    try device.activatePIN().expect(204)
    let path = "/device/v1/profiles/PROF01/pin"
    for token in [device.refreshToken, .wrong] {
      #expect(try device.activatePIN(device.assertion(path, token, nonce: nonce)).slug == .actionNotAllowed)
    }
    try device.logIn().expect(200)
    #expect(try device.failureCounts()?.previousFailureCount == 0)
  }

  @Test("A pending refresh token is tried once") func aPendingRefreshTokenIsTriedOnce() throws {
    try device.activateForPIN(code).expect(200)
    let path = "/device/v1/profiles/PROF01/pin"
    #expect(
      try device.activatePIN(device.assertion(path, .wrong, nonce: device.pinNonce)).slug == .answerInvalid)
    #expect(try device.activatePIN().slug == .actionNotAllowed)
    try device.activateForPIN(code).expect(200)
    try device.activatePIN().expect(204)
  }

  @Test("Without its PIN a profile is good for nothing") func withoutItsPINAProfileIsGoodForNothing() throws {
    try device.activateForPIN(code).expect(200)
    #expect(try device.exchangeKeys().slug == .actionNotAllowed)
    let login = try device.logInWithPIN()
    #expect(login.status == 400 && login.errorCode == 10000)
    try device.logIn().expect(200)
    #expect(try device.failureCounts() == nil)
    #expect(try device.beginPINChange().reply.slug == .actionNotAllowed)
  }

  @Test("And expires after ten minutes") func andExpiresAfterTenMinutes() throws {
    try device.activateForPIN(code).expect(200)
    try fixture.server.query("UPDATE knowledge SET proposed_at_ms = proposed_at_ms - 600000")
    #expect(try device.activatePIN().slug == .userDeregistered)
    // The timer notifies clients; a restarted server checks immediately.
    _ = fixture.server.stop(killing: true)
    let again = try PINFixture(after: fixture)
    try device.logIn().expect(200)
    var page = try device.events(after: nil)
    let validation = ValidationRequest(softwareVersion: "1.0.0", osVersion: "x", profiles: ["PROF01"])
    func removed() throws -> [String] {
      try device.call("POST", "/device/v1/validations", body: validation).decoded(ValidationResponse.self)
        .removedProfiles
    }
    for _ in 1...10 where try removed().isEmpty { page = try device.events(after: page?.cursor) }
    #expect(try removed() == ["PROF01"])
    #expect(try device.activateForPIN(code).json["error"] as? String == "invalid_grant")
    _ = again
  }

  @Test("Activation needs the user") func activationNeedsTheUser() throws {
    try device.activateForPIN(code).expect(200)
    device.userToken = nil
    try device.logIn().expect(200)
    device.userToken = device.deviceToken
    #expect(try device.activatePIN().slug == .notAuthenticated)
  }

  @Test("A server without PINs gives no refresh token") func aServerWithoutPINsGivesNoRefreshToken() throws {
    let ready = try ReadyServer()
    let (server, device) = (ready.server, ready.device)
    let response = try device.activateForPIN(server.activationCode(for: "alice")).decoded(AccessTokenResponse.self)
    #expect(response.sealedToken == nil)
    #expect(try device.call("GET", "/device/v1/configuration").decoded(DeviceConfiguration.self).pinPolicy == nil)
    #expect(
      try device.activatePIN(KnowledgeKey(refreshToken: .wrong, clientID: "", profileID: "").emptyAssertion()).slug
        == .actionNotAllowed)
  }
}

extension KnowledgeKey {
  fileprivate func emptyAssertion() throws -> String {
    try assertion(.init(clientID: "", profileID: "", audience: "", identifier: "", now: 0))
  }
}
