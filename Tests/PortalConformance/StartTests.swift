// SPDX-License-Identifier: Apache-2.0
import ReferenceProtocol
import ServerTestSupport
import Testing

/// `POST …/authenticate/user`: its parameters and responses.
@Suite(.timeLimit(.minutes(5))) struct StartTests {
  @Test("A started transaction") func aStartedTransaction() throws {
    let portal = try Portal(TokenServerProcess())
    let device = try DeviceClient.enrolled(at: portal.server, as: "alice")
    let reply = try portal.start(["device_id": device.clientID])
    #expect(reply.status == 200)
    #expect(reply.json["auth_method"] as? String == "push")
    #expect(reply.json["time_to_live"] as? Int == 60_000)
    #expect((reply.json["transaction_id"] as? String)?.count == 36)
    let reported = reply.json["device"] as? [String: any Sendable]
    #expect(reported?["name"] as? String == "Test device")
    #expect(reported?["platform"] as? String == "linux")
  }

  @Test("The longest message", arguments: [(155, 200), (156, 400)])
  func theLongestMessage(length: Int, status: Int) throws {
    let portal = try Portal(TokenServerProcess())
    let device = try DeviceClient.enrolled(at: portal.server, as: "alice")
    let message = String(repeating: "é", count: length)
    let reply = try portal.start(["device_id": device.clientID, "message": message])
    #expect(reply.status == status)
    #expect(reply.json["error_code"] as? Int == (status == 400 ? 1005 : nil))
  }

  /// A control character takes six bytes in JSON.
  @Test(
    "A long secure message is accepted, delivered whole and verified",
    arguments: [("é", 32_768, 200), ("é", 32_769, 400), ("\u{1}", 65_536, 200), ("😀", 16_384, 200)])
  func aLongSecureMessage(character: String, length: Int, status: Int) throws {
    let portal = try Portal(TokenServerProcess())
    let device = try DeviceClient.enrolled(at: portal.server, as: "alice")
    let message = String(repeating: character, count: length)
    let reply = try portal.start(["device_id": device.clientID, "secure_message": message])
    #expect(reply.status == status)
    guard status == 200 else {
      #expect(reply.json["error_code"] as? Int == 1005)
      return
    }
    let transaction = try #require(reply.json["transaction_id"] as? String)
    #expect(try device.fetch(transaction).request.message == message)
    #expect(try device.pending().map(\.transactionID) == [transaction])
  }

  @Test(
    "Wrong parameters",
    arguments: [
      (["type": nil], 400, 1003), (["type": "lottery"], 404, 3005), (["user_id": nil], 400, 1003),
      (["device_id": nil], 400, 1003), (["device_id": "00"], 404, 1001), (["user_id": "nobody"], 404, 1001),
      (["callback_uri": nil], 400, 1003), (["callback_uri": "ftp://portal/"], 400, 1003),
      (["type": "payment", "message": nil], 400, 1003),
    ] as [([String: String?], Int, Int)])
  func wrongParameters(change: [String: String?], status: Int, code: Int) throws {
    let portal = try Portal(TokenServerProcess())
    let device = try DeviceClient.enrolled(at: portal.server, as: "alice")
    let reply = try portal.start(["device_id": device.clientID].merging(change) { $1 })
    #expect(reply.status == status, "\(change)")
    #expect(reply.json["error_code"] as? Int == code, "\(change)")
  }

  @Test("The types own message in the users language") func theTypesOwnMessageInTheUsersLanguage() throws {
    let types = """
      [[type]]
      name = "login"
      method = "push"
      request_expires_in = 600
      messages = { en = "Log in?", nl = "Inloggen?" }
      """
    let portal = try Portal(TokenServerProcess(configuration: configuration(types: types)))
    let device = try DeviceClient.enrolled(at: portal.server, as: "alice")
    for (language, message) in [(nil, "Log in?"), ("nl", "Inloggen?"), ("fr", "Log in?")] {
      let id = try portal.transaction(["device_id": device.clientID, "message": nil, "language_code": language])
      #expect(try device.pending().first { $0.transactionID == id }?.message == message)
    }
  }

  @Test("The callback must be on the list when there is one") func theCallbackMustBeOnTheListWhenThereIsOne() throws {
    let settings = """
      [mobile_authentication]
      callback_allow_list = true
      [[callback]]
      url = "https://portal.example/finished"
      """
    let portal = try Portal(TokenServerProcess(configuration: configuration(settings)))
    let device = try DeviceClient.enrolled(at: portal.server, as: "alice")
    let good = ["device_id": device.clientID, "callback_uri": "https://portal.example/finished"]
    #expect(try portal.start(good).status == 200)
    let bad = try portal.start(good.merging(["callback_uri": "https://portal.example/finished/"]) { $1 })
    #expect(bad.status == 400)
    #expect(bad.json["error_code"] as? Int == 1003)
  }

  @Test(
    "A method this version does not offer is refused at the start",
    arguments: ["otp", "sms", "telepathy"])
  func aMethodThisVersionDoesNotOfferIsRefusedAtTheStart(method: String) {
    let types = "[[type]]\nname = \"login\"\nmethod = \"\(method)\"\n"
    let failure = #expect(throws: Curl.CurlError.self) {
      try TokenServerProcess(configuration: configuration(types: types))
    }
    #expect(failure?.description.contains("not \"\(method)\"") == true)
  }

  @Test("At the limit of open requests, one that replaces another starts; a hold is reported before the limit")
  func atTheLimitOfOpenRequests() throws {
    let settings = "[limits]\nopen_requests_per_device = 2"
    let types = """
      [[type]]
      name = "login"
      method = "push"
      request_expires_in = 600
      [[type]]
      name = "newest"
      method = "push"
      request_expires_in = 600
      supersede = true
      """
    let portal = try Portal(TokenServerProcess(configuration: configuration(settings, types: types)))
    let device = try DeviceClient.enrolled(at: portal.server, as: "alice")
    let login = try portal.transaction(["device_id": device.clientID])
    _ = try portal.transaction(["device_id": device.clientID, "type": "newest"])
    let refused = try portal.start(["device_id": device.clientID])
    #expect(refused.status == 503 && refused.json["error_code"] as? Int == 1002)
    let newer = try portal.transaction(["device_id": device.clientID, "type": "newest"])
    #expect(try Set(device.pending().map(\.transactionID)) == [login, newer])

    let second = try DeviceClient.enrolled(at: portal.server, as: "alice")
    try second.deny(portal.transaction(["device_id": second.clientID]), .notMe).expect(200)
    let held = try portal.start(["device_id": device.clientID])
    #expect(held.status == 503)
    #expect((held.json["error_description"] as? String)?.contains("not me") == true)
  }

  @Test("Version 3 names an application") func version3NamesAnApplication() throws {
    let mode = "[mobile_authentication]\npush_enrollment_mode = \"single\""
    let portal = try Portal(TokenServerProcess(configuration: configuration(mode)))
    let device = try DeviceClient.enrolled(at: portal.server, as: "alice")
    #expect(try portal.start(version: "v3").json["error_code"] as? Int == 1003)
    #expect(try portal.start(["app_id": "other"], version: "v3").json["error_code"] as? Int == 1001)
    let reply = try portal.start(["app_id": "approval-token"], version: "v3")
    #expect(reply.status == 200)
    #expect(try device.pending().map(\.transactionID) == [reply.json["transaction_id"] as? String ?? ""])
  }
}
