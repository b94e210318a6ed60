// SPDX-License-Identifier: Apache-2.0
import Cryptography
import Foundation
import OpenPGP
import ReferenceProtocol
import ServerTestSupport
import Testing

/// Registration, activation, login, key exchange and push enrollment, against the running server.
@Suite(.timeLimit(.minutes(5)), .mayBlock) struct EnrollmentTests {
  let server: TokenServerProcess

  init() throws { server = try TokenServerProcess() }

  @Test("The same code and key give the same device") func theSameCodeAndKeyGiveTheSameDevice() throws {
    let device = try DeviceClient(server)
    let code = try server.activationCode(for: "alice")
    try device.register(code).expect(201)
    let first = device.clientID
    #expect(first.count == 64 && first.allSatisfy { "0123456789ABCDEF".contains($0) })
    try device.register(code).expect(201)
    #expect(device.clientID == first)
    // Another key gets neither that device nor a new one.
    #expect(try DeviceClient(server).register(code).status == 401)
  }

  @Test("Wrong codes", arguments: ["", "x", "0000000000000", "1234567890128"])
  func wrongCodes(code: String) throws {
    let reply = try DeviceClient(server).register(code)
    #expect(reply.status == 401)
    #expect(reply.headers["www-authenticate"]?.hasPrefix("Bearer") == true)
    #expect(reply.headers["dpop-nonce"] != nil)
  }

  @Test("Wrong codes are slowed down") func wrongCodesAreSlowedDown() throws {
    let device = try DeviceClient(server)
    for _ in 1...10 { try device.register(ActivationCode.random().digits).expect(401) }
    // The limit refills slowly: on a slow machine one more attempt may be allowed during the loop.
    let replies = try (1...20).map { _ in try device.register(ActivationCode.random().digits) }
    let slowed = try #require(replies.first { $0.status == 429 })
    #expect(slowed.headers["retry-after"] != nil)
    // A correct code is refused too; a correct guess must not be visible. It uses up no attempt, and one is added every
    // six seconds: on a slow machine perhaps between two calls.
    let code = try server.activationCode(for: "alice")
    let isRefused = try (1...20).contains { _ in
      _ = try (1...20).first { _ in try device.register(ActivationCode.random().digits).status == 429 }
      return try device.register(code).status == 429
    }
    #expect(isRefused)
  }

  @Test("The activation may be repeated by its owner") func theActivationMayBeRepeatedByItsOwner() throws {
    let code = try server.activationCode(for: "alice")
    let (device, other) = (try DeviceClient(server), try DeviceClient(server))
    try device.register(code).expect(201)
    try device.activate(code).expect(200)
    try device.activate(code).expect(200)
    device.profileID = "OTHER1"
    #expect(try device.activate(code).json["error"] as? String == "invalid_grant")
    try other.register(try server.activationCode(for: "bob")).expect(201)
    #expect(try other.activate(code).json["error"] as? String == "invalid_grant")
  }

  @Test("A profile belongs to one user") func aProfileBelongsToOneUser() throws {
    let device = try DeviceClient.enrolled(at: server, as: "alice")
    let reply = try device.activate(try server.activationCode(for: "bob"))
    #expect(reply.status == 400)
    #expect(reply.json["error"] as? String == "invalid_request")
    #expect(try device.activate("0").json["error"] as? String == "invalid_grant")
  }

  @Test("A bad profile name", arguments: ["short", "toolong", "lower1", "A-B-C1"])
  func aBadProfileName(name: String) throws {
    let device = try DeviceClient(server)
    let code = try server.activationCode(for: "alice")
    try device.register(code).expect(201)
    device.profileID = name
    #expect(try device.activate(code).json["error"] as? String == "invalid_request")
  }

  @Test("A fleet token registers many") func aFleetTokenRegistersMany() throws {
    let token = try #require(try server.admin("fleet-token", "add", "bench")["token"] as? String)
    let devices = [try DeviceClient(server), try DeviceClient(server)]
    for device in devices + [devices[0]] { try device.register(token).expect(201) }
    #expect(devices[0].clientID != devices[1].clientID)
    try devices[0].activate(try server.activationCode(for: "alice")).expect(200)
    try server.admin("fleet-token", "delete", "bench")
    #expect(try DeviceClient(server).register(token).status == 401)
  }

  @Test("A device with a wrong clock is notified") func deviceWithAWrongClockIsNotified() throws {
    let device = try DeviceClient.enrolled(at: server, as: "alice")
    let reply = try device.token(["grant_type=client_credentials"], now: 0)
    #expect(reply.status == 400)
    #expect(reply.json["error_code"] as? Int == 9031)
  }

  @Test("An unknown device is notified") func unknownDeviceIsNotified() throws {
    let device = try DeviceClient(server)
    device.clientID = String(repeating: "A", count: 64)
    let reply = try device.logIn()
    #expect(reply.status == 401)
    #expect(reply.json["error"] as? String == "invalid_client")
    #expect(reply.json["error_code"] as? Int == 9002)
  }

  @Test("Keys need the user and an acknowledgement") func keysNeedTheUserAndAnAcknowledgement() throws {
    let device = try DeviceClient(server)
    let code = try server.activationCode(for: "alice")
    try device.register(code).expect(201)
    try device.activate(code).expect(200)
    #expect(try device.enrollForPush().decoded(Problem.self).slug == .keysNotExchanged)
    try device.exchangeKeys().expect(200)
    let keyID = device.keyID
    try device.exchangeKeys().expect(200)
    #expect(device.keyID == keyID)
    #expect(try device.enrollForPush().decoded(Problem.self).slug == .keysNotExchanged)
    device.keyID = "another"
    #expect(try device.acknowledgeKeys().decoded(Problem.self).slug == .answerInvalid)
    device.keyID = keyID
    try device.acknowledgeKeys().expect(204)
    try device.enrollForPush().expect(200)
    let another = try OpenPGPKey.generate(userID: "another").certificate
    #expect(try device.exchangeKeys(another).decoded(Problem.self).slug == .alreadyEnrolled)
    let user = device.userToken
    try device.logIn().expect(200)
    device.userToken = device.deviceToken
    #expect(try device.exchangeKeys().decoded(Problem.self).slug == .notAuthenticated)
    device.userToken = user
    #expect(
      try device.call("PUT", "/device/v1/profiles/NOBODY/push", token: user).decoded(Problem.self).slug == .notFound)
  }

  @Test(
    "A second device",
    arguments: [("single", Problem.Slug?.some(.userAlreadyEnrolled)), ("override", nil), ("multiple", nil)])
  func aSecondDevice(mode: String, refusal: Problem.Slug?) throws {
    let configuration = "[mobile_authentication]\npush_enrollment_mode = \"\(mode)\""
    let server = try TokenServerProcess(configuration: configuration)
    let first = try DeviceClient.enrolled(at: server, as: "alice")
    let cursor = try first.events(after: nil)?.cursor
    guard refusal == nil else {
      #expect(throws: Curl.CurlError.self) { try DeviceClient.enrolled(at: server, as: "alice") }
      return
    }
    _ = try DeviceClient.enrolled(at: server, as: "alice")
    let validation = ValidationRequest(softwareVersion: "1.0.0", osVersion: "x", profiles: ["PROF01", "GONE00"])
    let found = try first.call("POST", "/device/v1/validations", body: validation).decoded(ValidationResponse.self)
    #expect(found.disenrolledProfiles == (mode == "override" ? ["PROF01"] : []))
    #expect(found.removedProfiles == ["GONE00"])
    if mode == "override" {
      #expect(try first.events(after: cursor)?.events == [DeviceEvent(.profileRevoked, profileID: "PROF01")])
    }
  }

  @Test("One server key for all or one for each") func oneServerKeyForAllOrOneForEach() throws {
    for (isUnique, count) in [(false, 1), (true, 2)] {
      let configuration = "[mobile_authentication]\nunique_server_keys = \(isUnique)"
      let server = try TokenServerProcess(configuration: configuration)
      let devices = [
        try DeviceClient.enrolled(at: server, as: "alice"), try DeviceClient.enrolled(at: server, as: "bob"),
      ]
      #expect(Set(devices.compactMap { $0.serverCertificate?.fingerprint }).count == count)
    }
  }

  /// A server with a key for each profile, and an activated device without keys.
  private func serverWithUniqueKeys() throws -> (TokenServerProcess, DeviceClient) {
    let server = try TokenServerProcess(configuration: "[mobile_authentication]\nunique_server_keys = true")
    let device = try DeviceClient(server)
    let code = try server.activationCode(for: "alice")
    try device.register(code).expect(201)
    try device.activate(code).expect(200)
    return (server, device)
  }

  @Test("A key exchange that is repeated before it is acknowledged makes no further server key") func unusedServerKey()
    throws
  {
    let (server, device) = try serverWithUniqueKeys()
    let first = try server.count("server_key")
    for _ in 1...3 {
      try device.exchangeKeys(OpenPGPKey.generate(userID: "another").certificate).expect(200)
    }
    #expect(try server.count("server_key") == first + 1)
  }

  @Test("A device that removes its keys and exchanges new ones, again and again, leaves two server keys at most")
  func removedServerKeys() throws {
    let (server, device) = try serverWithUniqueKeys()
    let first = try server.count("server_key")
    let path = "/device/v1/profiles/PROF01/mobile-auth"
    for _ in 1...3 {
      try device.exchangeKeys(OpenPGPKey.generate(userID: "another").certificate).expect(200)
      try device.call("DELETE", path).expect(204)
    }
    // The last one, with which the server would sign that the keys are gone.
    #expect(try server.count("server_key") == first + 1)
    // Of exchanges at the same time, those that fail leave none.
    let commands = try (0..<4).map { _ -> Curl.Command in
      let certificate = try OpenPGPKey.generate(userID: "another").certificate
      let exchange = KeyExchangeRequest(openPGPCertificate: certificate.bytes.base64)
      return (try device.arguments("PUT", path), JSON.encode(exchange))
    }
    #expect(try server.curl.race(commands).contains { $0.status == 200 })
    #expect(try server.count("server_key") == first + 2)
  }

  /// The enrolling command does not know the board; the service on the board does.
  @Test("A validation replaces the registered capabilities; a validation without capabilities keeps them")
  func capabilitiesAreUpdated() throws {
    let device = try DeviceClient.enrolled(at: server, as: "alice")
    func stored() throws -> ApprovalCapabilities {
      let text = try server.query("SELECT capabilities FROM device WHERE id = '\(device.clientID)'")
      return try JSON.decode(ApprovalCapabilities.self, from: Array(text.utf8))
    }
    func validate(_ capabilities: ApprovalCapabilities?) throws -> Int {
      let validation = ValidationRequest(
        softwareVersion: "1.0.0", osVersion: "x", profiles: ["PROF01"], approvalCapabilities: capabilities)
      return try device.call("POST", "/device/v1/validations", body: validation).status
    }
    #expect(try !stored().keypad)
    let board = ApprovalCapabilities(display: .none, keypad: true, button: true, led: .rgb, biometric: ["finger"])
    #expect(try validate(board) == 200)
    #expect(try stored() == board)
    #expect(try validate(nil) == 200)
    #expect(try stored() == board)
    // The same bounds as for the registration.
    for names in [["\u{1B}[2J"], Array(repeating: "c", count: 33), [String(repeating: "c", count: 65)]] {
      var bad = board
      bad.custom = names
      #expect(try validate(bad) == 400)
    }
    #expect(try stored() == board)
  }

  /// Fails if an unreadable profile is reported as removed: the token would wipe the account.
  @Test("An unreadable profile is not reported as removed")
  func unreadableProfileIsNotRemoved() throws {
    let device = try DeviceClient.enrolled(at: server, as: "alice")
    try server.query("UPDATE profile SET created_at_ms = -1")
    let validation = ValidationRequest(softwareVersion: "1.0.0", osVersion: "x", profiles: ["PROF01", "GONE00"])
    let found = try device.call("POST", "/device/v1/validations", body: validation).decoded(ValidationResponse.self)
    #expect(found.removedProfiles == ["GONE00"])
  }

  @Test("An outdated device is notified by its validation, and nothing else is refused")
  func outdatedDeviceIsNotified() throws {
    let server = try TokenServerProcess(configuration: "[mobile_authentication]\nminimum_software_version = \"2.0\"")
    let device = try DeviceClient.enrolled(at: server, as: "alice")
    let validation = ValidationRequest(softwareVersion: "1.9", osVersion: "x", profiles: [])
    #expect(
      try device.call("POST", "/device/v1/validations", body: validation).decoded(Problem.self).slug == .outdatedApp)
    #expect(try device.pending().isEmpty)
  }

  @Test("A device announces the versions of the protocol that it supports, and is refused if none is common")
  func announcedVersions() throws {
    let device = try DeviceClient.enrolled(at: server, as: "alice")
    func answer(_ headers: String...) throws -> Curl.Reply {
      try device.call("GET", "/device/v1/configuration", headers: headers)
    }
    for header in ["Approval-Protocol: 1-1", "Approval-Protocol: 2-9"] {
      let configuration = try answer(header).expect(200).decoded(DeviceConfiguration.self)
      #expect(configuration.protocolVersions == .supported)
    }
    let problem = try answer("Approval-Protocol: 3-5").expect(403).decoded(Problem.self)
    #expect(problem.slug == .configurationInvalid && problem.detail?.hasSuffix(": update the token server") == true)
    for header in ["Approval-Protocol: 5-3", "Approval-Protocol: one"] {
      #expect(try answer(header).expect(400).decoded(Problem.self).slug == .invalidRequest)
    }
    try answer("Approval-Protocol: 1-2", "Approval-Protocol: 1-2").expect(400)
  }

  @Test("The versions are checked after the credentials") func versionsAreCheckedLast() throws {
    let device = try DeviceClient.enrolled(at: server, as: "alice")
    let reply = try device.call(
      "GET", "/device/v1/configuration", token: "unknown", headers: ["Approval-Protocol: 3-5"])
    #expect(reply.status == 401)
  }

  @Test("A device that is too new is not registered, and its code stays valid") func tooNewDevice() throws {
    let device = try DeviceClient(server)
    let code = try server.activationCode(for: "alice")
    let refused = try device.register(code, headers: ["Approval-Protocol: 3-5"]).expect(400)
    #expect(refused.json["error_code"] as? Int == 10001)
    try device.register(code).expect(201)
  }
}
