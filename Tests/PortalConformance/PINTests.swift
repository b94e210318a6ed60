// SPDX-License-Identifier: Apache-2.0
import Foundation
import ReferenceProtocol
import Secrets
import ServerTestSupport
import Testing

/// Requests that need a PIN in the portal API: availability, start, and their rows of the result table.
@Suite(.timeLimit(.minutes(5))) struct PINTests {
  let sink: CallbackSink
  let portal: Portal
  let device: DeviceClient

  static let settings = """
    [application]
    pin = true
    """

  static let types = """
    [[type]]
    name = "payment"
    method = "push_with_pin"
    request_expires_in = 600
    [[type]]
    name = "login"
    method = "push"
    request_expires_in = 600
    """

  init() throws {
    sink = try CallbackSink()
    portal = try Portal(TokenServerProcess(configuration: configuration(Self.settings, types: Self.types)))
    device = try DeviceClient.enrolledWithPIN(at: portal.server, as: "alice")
  }

  private static var wrong: SecretBytes { SecretBytes(copying: [UInt8](repeating: 7, count: 32)) }

  private func start() throws -> String {
    try portal.transaction(
      ["device_id": device.clientID, "type": "payment", "callback_uri": sink.url + "/204/payment"])
  }

  private func calls(about transaction: String, after count: Int) throws -> Int {
    try sink.calls(to: "/204/payment", count: count).count { $0.body.contains(transaction) }
  }

  @Test("Offered") func offered() throws {
    let options = try portal.get("/oauth/api/v4/authenticate/user/alice/enabled").json["enabled"]
    let listed = try #require(options as? [[String: any Sendable]])
    #expect(listed.map { $0["type"] as? String } == ["payment", "login"])
    #expect(listed.map { $0["method"] as? String } == ["PUSH_WITH_PIN", "PUSH"])
    let path = "/oauth/api/v4/authenticate/user/alice/device/\(device.clientID)/enabled"
    #expect(try portal.get(path).json["enabled"] as? [String] == ["payment", "login"])
  }

  /// A user who was enrolled before the server required a PIN is available only for types without a PIN.
  @Test("Not offered without a PIN") func notOfferedWithoutPIN() throws {
    let former = try TokenServerProcess(configuration: configuration())
    let device = try DeviceClient.enrolled(at: former, as: "bob")
    let (id, secret) = try former.addPortal()
    #expect(former.stop() == 0)
    let server = try TokenServerProcess(
      configuration: configuration(Self.settings, types: Self.types), directory: former.directory)
    let user = server.url + "/oauth/api/v4/authenticate/user"
    func get(_ path: String) throws -> [String: any Sendable] {
      try server.curl("--user", "\(id):\(secret)", user + path).expect(200).json
    }
    #expect(try get("/bob/device/\(device.clientID)/enabled")["enabled"] as? [String] == ["login"])
    let options = try get("/bob/enabled")["enabled"] as? [[String: any Sendable]]
    #expect(options?.map { $0["type"] as? String } == ["login"])
    let refused = try server.curl(
      "--user", "\(id):\(secret)", "--data", "type=payment&user_id=bob&device_id=\(device.clientID)&message=x",
      "--data", "callback_uri=http://127.0.0.1:9/", user)
    #expect(refused.status == 404 && refused.json["error_code"] as? Int == 1001)
  }

  @Test("Started") func started() throws {
    let reply = try portal.start(["device_id": device.clientID, "type": "payment"]).expect(200)
    #expect(reply.json["auth_method"] as? String == "push_with_pin")
    let result = try portal.result(reply.json["transaction_id"] as? String ?? "")
    #expect(result["is_authenticated"] as? Bool == false && result.reason == nil)
    #expect(result["authentication_method"] == nil)
    #expect(result["used_authentication_attempts"] as? Int == 0)
    let plain = try portal.result(portal.transaction(["device_id": device.clientID]))
    #expect(plain["used_authentication_attempts"] == nil)
  }

  @Test("Accepted after a wrong PIN") func acceptedAfterAWrongPIN() throws {
    let transaction = try start()
    let fetched = try device.fetch(transaction)
    let wrong = try device.send(device.answerWithPIN(fetched, Self.wrong), to: transaction).expect(422)
    var result = try portal.result(transaction)
    #expect(result["is_authenticated"] as? Bool == false && result.reason == nil)
    #expect(result["authentication_method"] as? String == "push_with_pin")
    #expect(result["used_authentication_attempts"] as? Int == 1)
    let nonce = try wrong.decoded(Problem.self).nonce
    try device.send(device.answerWithPIN(fetched, attempt: 2, nonce: nonce), to: transaction).expect(200)
    // Exactly one callback, for this transaction: the wrong PIN caused none.
    #expect(try calls(about: transaction, after: 1) == 1)
    result = try portal.result(transaction)
    #expect(result["is_authenticated"] as? Bool == true && result.reason == nil)
    #expect(result["authentication_method"] as? String == "push_with_pin")
    #expect(result["used_authentication_attempts"] as? Int == 2)
  }

  @Test("Denied without a PIN") func deniedWithoutPIN() throws {
    let transaction = try start()
    try device.deny(transaction, .notMe).expect(200)
    #expect(try calls(about: transaction, after: 1) == 1)
    let result = try portal.result(transaction)
    #expect(result["is_authenticated"] as? Bool == false && result.reason == "not_accepted")
    #expect(result["authentication_method"] as? String == "push_with_pin")
    #expect(result["used_authentication_attempts"] as? Int == 0)
  }

  @Test("The limit") func theLimit() throws {
    let other = try device.secondUser("bob", profile: "PROF02")
    let (transaction, open) = (try start(), try start())
    var fetched = try device.fetch(transaction)
    for attempt in 1...3 {
      try device.send(device.answerWithPIN(fetched, Self.wrong, attempt: attempt), to: transaction)
      if attempt < 3 { fetched = try device.fetch(transaction) }
    }
    _ = try sink.calls(to: "/204/payment", count: 2)
    #expect(try calls(about: transaction, after: 2) == 1 && calls(about: open, after: 2) == 1)
    let result = try portal.result(transaction)
    #expect(result["is_authenticated"] as? Bool == false && result.reason == "invalid_answer")
    #expect(result["authentication_method"] as? String == "push_with_pin")
    #expect(result["used_authentication_attempts"] as? Int == 3)
    #expect(try portal.result(open).reason == "invalid_request")
    #expect(try portal.start(["device_id": device.clientID, "type": "login"]).json["error_code"] as? Int == 1001)
    // The device's other user is not affected.
    let fine = try portal.start(["device_id": other.clientID, "type": "payment", "user_id": "bob"])
    let answered = try fine.expect(200).json["transaction_id"] as? String ?? ""
    try other.send(other.answerWithPIN(other.fetch(answered)), to: answered).expect(200)
    #expect(try portal.result(answered)["is_authenticated"] as? Bool == true)
  }

  @Test("The device is listed with its tokens") func theDeviceIsListedWithItsTokens() throws {
    let listed = try portal.get("/oauth/api/v4/users/alice/devices").expect(200).json["devices"]
    let types = (listed as? [[String: any Sendable]])?.first?["tokenTypes"] as? [String]
    #expect(types == ["access_token", "refresh_token"])
  }
}
