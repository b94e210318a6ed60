// SPDX-License-Identifier: Apache-2.0
import Cryptography
import OpenPGP
import ReferenceProtocol
import ServerTestSupport
import Testing

/// The layers of enrollment: the profile with its PIN, the keys, push. Each is lost and regained alone.
@Suite(.timeLimit(.minutes(5)), .mayBlock) struct EnrollmentLayerTests {
  let fixture: PINFixture
  let device: DeviceClient

  init() throws { (fixture, device) = try PINFixture.enrolled() }

  private func validation() throws -> ValidationResponse {
    try device.call(
      "POST", "/device/v1/validations",
      body: ValidationRequest(softwareVersion: "1.0.0", osVersion: "x", profiles: ["PROF01", "NONE01"])
    ).expect(200).decoded(ValidationResponse.self)
  }

  private func disable(_ what: String) throws {
    let path = "/oauth/api/v4/users/alice/devices/\(device.clientID)/\(what)"
    try fixture.server.curl(
      "--user", "\(fixture.portal.id):\(fixture.portal.secret)", "--request", "POST", fixture.server.url + path
    ).expect(204)
  }

  private func layer(of response: ValidationResponse) throws -> RevocationNotice.Layer? {
    let sealed = try #require(response.revocations?.first)
    let notice = try device.openPGP.open(bytes(base64: sealed)!, from: device.serverCertificate!)
    return try JSON.decode(RevocationNotice.self, from: notice).layer
  }

  @Test("All layers are there, and an unknown profile has none") func all() throws {
    #expect(
      try validation().layers == [ProfileLayers(profileID: "PROF01", pin: true, mobileAuth: true, push: true)])
  }

  @Test("Without push the device keeps keys and PIN, and enrolls for push again with the PIN") func push() throws {
    try disable("disablePushAuthentication")
    let response = try validation()
    #expect(response.layers == [ProfileLayers(profileID: "PROF01", pin: true, mobileAuth: true, push: false)])
    #expect(try layer(of: response) == .push)
    try device.logInWithPIN().expect(200)
    try device.enrollForPush().expect(200)
    #expect(try validation().layers?.first?.push == true && validation().disenrolledProfiles == [])
    let transaction = try fixture.ask(device)
    try device.send(device.answerWithPIN(device.fetch(transaction)), to: transaction).expect(200)
  }

  @Test("Without keys the device keeps the PIN, and exchanges keys again with it, without an activation code")
  func keys() throws {
    try disable("disableMobileAuthentication")
    let response = try validation()
    #expect(response.layers == [ProfileLayers(profileID: "PROF01", pin: true, mobileAuth: false, push: false)])
    #expect(try layer(of: response) == .mobileAuth)
    try device.logInWithPIN().expect(200)
    try device.exchangeKeys().expect(200)
    try device.acknowledgeKeys().expect(204)
    try device.enrollForPush().expect(200)
    let transaction = try fixture.ask(device)
    try device.send(device.answerWithPIN(device.fetch(transaction)), to: transaction).expect(200)
  }

  @Test("The device can remove and regain each layer itself") func byDevice() throws {
    try device.logInWithPIN().expect(200)
    try device.call("DELETE", "/device/v1/profiles/PROF01/push").expect(204)
    #expect(
      try validation().layers?.first == ProfileLayers(profileID: "PROF01", pin: true, mobileAuth: true, push: false))
    try device.enrollForPush().expect(200)
    try device.call("DELETE", "/device/v1/profiles/PROF01/mobile-auth").expect(204)
    #expect(
      try validation().layers?.first == ProfileLayers(profileID: "PROF01", pin: true, mobileAuth: false, push: false))
    try device.exchangeKeys().expect(200)
    try device.acknowledgeKeys().expect(204)
    try device.enrollForPush().expect(200)
    #expect(try validation().layers?.first?.push == true)
  }
}
