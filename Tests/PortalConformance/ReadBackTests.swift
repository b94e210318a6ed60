// SPDX-License-Identifier: Apache-2.0
import ReferenceProtocol
import ServerTestSupport
import Testing

/// Types whose requests are approved only after the user has typed digits that the portal names.
@Suite("Digits to type", .timeLimit(.minutes(5))) struct ReadBackTests {
  let portal: Portal
  let device: DeviceClient

  init() throws {
    let types = """
      [[type]]
      name = "transfer"
      method = "push"
      request_expires_in = 600
      read_back = "digits"
      """
    portal = try Portal(TokenServerProcess(configuration: configuration(types: types)))
    device = try DeviceClient.enrolled(at: portal.server, as: "alice")
  }

  private func start(_ digits: String? = "1250") throws -> Curl.Reply {
    try portal.start([
      "device_id": device.clientID, "type": "transfer", "message": "Pay 1,250 EUR?", "read_back": digits,
    ])
  }

  @Test("A device that cannot let the user type them is not asked") func capability() throws {
    let refused = try start()
    #expect(refused.status == 404 && refused.json["error_code"] as? Int == 1001)
    let path = "/oauth/api/v4/authenticate/user/alice/device/\(device.clientID)/enabled"
    #expect((try portal.get(path).expect(200).json["enabled"] as? [String])?.isEmpty == true)
    for (announced, isAsked) in [(false, false), (true, true), (nil, false)] as [(Bool?, Bool)] {
      try device.announce(readBack: announced)
      #expect(try start().status == (isAsked ? 200 : 404))
      #expect(try portal.get(path).json["enabled"] as? [String] == (isAsked ? ["transfer"] : []))
    }
  }

  @Test("The portal must name digits that are in the message") func parameters() throws {
    try device.announce(readBack: true)
    for digits in [nil, "", "125", "12,50"] as [String?] {
      let refused = try start(digits)
      #expect(refused.status == 400 && refused.json["error_code"] as? Int == 1003, "\(digits ?? "none")")
    }
  }

  @Test("The digits are signed, and only an approval that repeats them counts") func approval() throws {
    try device.announce(readBack: true)
    let transaction = try start().expect(200).json["transaction_id"] as? String ?? ""
    #expect(try device.fetch(transaction).request.readBack == "1250")
    // As a device of an earlier version answers, and with other digits.
    for digits in [nil, "", "125", "12500"] as [String?] {
      let answer = try device.answer(transaction, .accept) { $0.readBack = digits }
      let refused = try device.send(answer, to: transaction).expect(422)
      #expect(
        refused.json["code"] as? Int == 10015 && (refused.json["detail"] as? String)?.contains("read_back") == true)
      #expect(try portal.result(transaction)["is_authenticated"] as? Bool == false)
    }
    try device.send(device.answer(transaction, .accept) { $0.readBack = "1250" }, to: transaction).expect(200)
    #expect(try portal.result(transaction)["is_authenticated"] as? Bool == true)
  }

  @Test("A denial needs no digits") func denial() throws {
    try device.announce(readBack: true)
    let transaction = try start().expect(200).json["transaction_id"] as? String ?? ""
    try device.send(device.answer(transaction, .deny), to: transaction).expect(200)
    #expect(try portal.result(transaction).reason == "not_accepted")
  }
}
