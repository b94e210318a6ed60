// SPDX-License-Identifier: Apache-2.0
import BuiltPrograms
import Cryptography
import Foundation
import OpenPGP
import ReferenceProtocol
import ServerTestSupport
import Testing

/// Signed receipts and revocations of the server, against the running server.
@Suite(.timeLimit(.minutes(5)), .mayBlock) struct StatementTests {
  let server: TokenServerProcess
  let device: DeviceClient
  let portal: (id: String, secret: String)

  init() throws {
    let ready = try ReadyServer()
    (server, device, portal) = (ready.server, ready.device, ready.portal)
  }

  private func ask() throws -> Curl.Reply {
    try server.curl(
      "--user", "\(portal.id):\(portal.secret)", "--data", "type=login&user_id=alice&device_id=\(device.clientID)",
      "--data", "callback_uri=https://portal.example/", server.url + "/oauth/api/v4/authenticate/user")
  }

  private func open<Statement: Decodable>(_ sealed: String, as type: Statement.Type) throws -> Statement {
    let message = try #require(bytes(base64: sealed))
    return try JSON.decode(type, from: device.openPGP.open(message, from: device.serverCertificate!))
  }

  @Test("A receipt is signed and names its answer, also when it is requested again")
  func receipts() throws {
    let transaction = try #require(try ask().expect(200).json["transaction_id"] as? String)
    #expect(try device.fetch(transaction).request.signedReceipt == true)
    let answer = try device.answer(transaction, .accept)
    let key = Random.uuid()
    let status = try device.send(answer, to: transaction, key: key).expect(200).decoded(RequestStatus.self)
    let receipt = try open(try #require(status.sealedReceipt), as: ApprovalReceipt.self)
    #expect(
      receipt
        == ApprovalReceipt(
          iss: server.url, clientID: device.clientID, profileID: device.profileID, transactionID: transaction,
          state: .authenticated, receipt: status.receipt ?? "", idempotencyKey: key,
          answerSHA256: SHA256.hash(JSON.encode(answer)).base64URL))
    let later = try device.call("GET", "/device/v1/requests/\(transaction)").decoded(RequestStatus.self)
    #expect(later.sealedReceipt == status.sealedReceipt)
  }

  /// Fails if a proxy can forge the same statement.
  @Test(
    "The notice of lost keys or push enrollment is signed with the key of the enrollment",
    arguments: [("disableMobileAuthentication", .mobileAuth), ("disablePushAuthentication", .push)]
      as [(String, RevocationNotice.Layer)])
  func keysGone(action: String, layer: RevocationNotice.Layer) throws {
    let reply = try server.curl(
      "--user", "\(portal.id):\(portal.secret)", "--request", "POST",
      server.url + "/oauth/api/v4/users/alice/devices/\(device.clientID)/\(action)")
    #expect(reply.status == 204)
    let validation = ValidationRequest(softwareVersion: "1.0.0", osVersion: "linux", profiles: [device.profileID])
    let validated = try device.call("POST", "/device/v1/validations", body: validation).decoded(ValidationResponse.self)
    #expect(validated.disenrolledProfiles == [device.profileID] && validated.removedProfiles.isEmpty)
    #expect(
      try open(try #require(validated.revocations?.first), as: RevocationNotice.self)
        == RevocationNotice(
          iss: server.url, clientID: device.clientID, profileID: device.profileID, scope: .keys, layer: layer))
  }

  @Test("Who deregistered a user or a device says so with the key of the enrollment")
  func revocations() throws {
    let user = try server.curl(
      "--user", "\(portal.id):\(portal.secret)", "--request", "DELETE",
      server.url + "/oauth/api/v4/users/alice/devices/\(device.clientID)")
    #expect(user.status == 204)
    let gone = try device.call("DELETE", "/device/v1/profiles/\(device.profileID)/push").decoded(Problem.self)
    #expect(gone.slug == .userDeregistered)
    #expect(
      try open(try #require(gone.revocations?.first), as: RevocationNotice.self)
        == RevocationNotice(iss: server.url, clientID: device.clientID, profileID: device.profileID, scope: .user))
    // Each notice costs a signature: there is one, however often the profile is named.
    let validation = ValidationRequest(
      softwareVersion: "1.0.0", osVersion: "linux", profiles: Array(repeating: device.profileID, count: 64))
    let validated = try device.call("POST", "/device/v1/validations", body: validation).decoded(ValidationResponse.self)
    #expect(validated.removedProfiles == [device.profileID] && validated.revocations?.count == 1)
    #expect(try open(try #require(validated.revocations?.first), as: RevocationNotice.self).scope == .user)

    try server.admin("device", "delete", device.clientID)
    let deleted = try device.call("GET", "/device/v1/pending").expect(401).decoded(Problem.self)
    #expect(deleted.slug == .deviceDeregistered)
    #expect(try open(try #require(deleted.revocations?.first), as: RevocationNotice.self).scope == .device)
    let reply = try device.logIn()
    #expect(reply.json["error_code"] as? Int == 9002)
    let notices = reply.json["revocations"] as? [String]
    #expect(try open(try #require(notices?.first), as: RevocationNotice.self).scope == .device)
  }

  @Test("After \"not me\" requests are on hold; an administrator can end the hold, and activations continue")
  func heldOff() throws {
    let transaction = try #require(try ask().expect(200).json["transaction_id"] as? String)
    try device.deny(transaction, .notMe).expect(200)
    let refused = try ask()
    #expect(refused.status == 503)
    #expect(refused.json["error_code"] as? Int == 1002)
    let seconds = try #require(refused.headers["retry-after"].flatMap { Int($0) })
    #expect((200...300).contains(seconds))
    #expect((refused.json["error_description"] as? String)?.contains("not me") == true)
    let list = try run(
      BuiltProgram.path("token-server"), ["transaction", "list", "--directory", server.directory])
    #expect(list.text.contains("alice is on hold until"))

    // Requests to another user are accepted, and alice may be activated on another device.
    _ = try DeviceClient.enrolled(at: server, as: "alice")

    #expect(try server.admin("user", "resume", "alice")["was_held"] as? Bool == true)
    #expect(try server.admin("user", "resume", "alice")["was_held"] as? Bool == false)
    try ask().expect(200)
  }

  @Test("\"Not me\" in a sealed answer starts a hold too, a plain denial does not")
  func heldOffByAnswer() throws {
    let first = try #require(try ask().expect(200).json["transaction_id"] as? String)
    try device.send(device.answer(first, .deny), to: first).expect(200)
    let second = try #require(try ask().expect(200).json["transaction_id"] as? String)
    try device.send(device.answer(second, .deny) { $0.reason = .notMe }, to: second).expect(200)
    try ask().expect(503)
  }

  @Test("A hold of 0 seconds has no effect")
  func noHold() throws {
    let ready = try ReadyServer(
      configuration: """
        [mobile_authentication]
        not_me_hold_seconds = 0
        [[type]]
        name = "login"
        method = "push"
        request_expires_in = 600
        messages = { en = "Log in?" }
        """)
    let (server, device, portal) = (ready.server, ready.device, ready.portal)
    func ask() throws -> Curl.Reply {
      try server.curl(
        "--user", "\(portal.id):\(portal.secret)", "--data", "type=login&user_id=alice&device_id=\(device.clientID)",
        "--data", "callback_uri=https://portal.example/", server.url + "/oauth/api/v4/authenticate/user")
    }
    let transaction = try #require(try ask().expect(200).json["transaction_id"] as? String)
    try device.deny(transaction, .notMe).expect(200)
    try ask().expect(200)
  }
}
