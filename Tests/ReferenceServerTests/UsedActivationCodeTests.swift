// SPDX-License-Identifier: Apache-2.0
import Cryptography
import Foundation
import OpenPGP
import ReferenceProtocol
import ServerTestSupport
import Testing

@testable import TokenServerCore

/// What a used activation code still opens for its device: an old copy of an SD card may have it. It is a code of a
/// fleet, which is valid for days.
@Suite(.timeLimit(.minutes(5)), .mayBlock) struct UsedActivationCodeTests {
  let fixture: PINFixture
  let device: DeviceClient
  let code: String

  init() throws {
    fixture = try PINFixture()
    device = try DeviceClient(fixture.server)
    code = try fixture.server.activationCode(for: "alice")
    try fixture.server.query("UPDATE activation_code SET expires_at_ms = expires_at_ms + 864000000")
    try device.register(code).expect(201)
    try device.activateForPIN(code).expect(200)
    try device.activatePIN().expect(204)
    try device.exchangeKeys().expect(200)
    try device.acknowledgeKeys().expect(204)
  }

  private func pass(_ time: Duration) throws {
    try fixture.server.query("UPDATE profile SET created_at_ms = created_at_ms - \(time.milliseconds)")
  }

  private func expectRefusal() throws {
    let reply = try device.activateForPIN(code)
    #expect(reply.status == 400 && reply.json["error"] as? String == "invalid_grant")
  }

  @Test("An interrupted enrollment continues with it, however late") func interrupted() throws {
    try pass(.seconds(86_400))
    try device.activateForPIN(code).expect(200)
    try device.enrollForPush().expect(200)
  }

  @Test("After the enrollment it opens nothing any more") func complete() throws {
    try device.enrollForPush().expect(200)
    // The device may have lost its power before it stored the end.
    try device.activateForPIN(code).expect(200)
    try pass(Profile.activationRepeatableFor)
    try expectRefusal()
    // With the PIN everything goes on.
    try device.logInWithPIN().expect(200)
  }

  @Test(
    "What a portal or the device has removed it does not bring back",
    arguments: ["disableMobileAuthentication", "disablePushAuthentication", "mobile-auth", "push"])
  func removed(what: String) throws {
    try device.enrollForPush().expect(200)
    if what.hasPrefix("disable") {
      try fixture.server.curl(
        "--user", "\(fixture.portal.id):\(fixture.portal.secret)", "--request", "POST",
        fixture.server.url + "/oauth/api/v4/users/alice/devices/\(device.clientID)/\(what)"
      ).expect(204)
    } else {
      try device.logInWithPIN().expect(200)
      try device.call("DELETE", "/device/v1/profiles/PROF01/\(what)").expect(204)
    }
    try expectRefusal()
  }

  @Test("An exchange of new keys, which ends push, does not bring it back") func replaced() throws {
    let mode = "\n[mobile_authentication]\npush_enrollment_mode = \"override\""
    let server = try TokenServerProcess(configuration: PINFixture.configuration() + mode)
    let device = try DeviceClient(server)
    let code = try server.activationCode(for: "alice")
    try device.register(code).expect(201)
    try device.activateForPIN(code).expect(200)
    try device.activatePIN().expect(204)
    try device.exchangeKeys().expect(200)
    try device.acknowledgeKeys().expect(204)
    try device.enrollForPush().expect(200)
    try device.exchangeKeys(OpenPGPKey.generate(userID: "another").certificate).expect(200)
    let reply = try device.activateForPIN(code)
    #expect(reply.status == 400 && reply.json["error"] as? String == "invalid_grant")
  }

  @Test("It does not stand for the PIN where a login is needed") func noLogin() throws {
    let fixture = try AuthenticatorFixture()
    try fixture.scripts.answer(status: 2000, registrationData: "card 7")
    try fixture.server.query("UPDATE access_token SET origin = 'activation' WHERE origin = 'pin'")
    let refused = try fixture.beginBadge()
    #expect(refused.status == 403 || refused.status == 401)
    #expect(refused.headers["www-authenticate"]?.contains("insufficient_scope") == true)
    #expect(try fixture.count("authenticator") == 0)
    try fixture.device.logInWithPIN().expect(200)
    try fixture.beginBadge().expect(201)
  }
}
