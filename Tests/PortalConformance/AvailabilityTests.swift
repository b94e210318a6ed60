// SPDX-License-Identifier: Apache-2.0
import ServerTestSupport
import Testing

/// The types and devices available for a user.
@Suite(.timeLimit(.minutes(5))) struct AvailabilityTests {
  @Test(
    "An unknown user",
    arguments: [
      "/oauth/api/v4/authenticate/user/nobody/enabled", "/oauth/api/v4/authenticate/user/nobody/device/00/enabled",
      "/oauth/api/v4/authenticate/user/no%20body%2F/enabled",
    ])
  func unknownUser(path: String) throws {
    let reply = try Portal(TokenServerProcess()).get(path)
    #expect(reply.status == 200)
    #expect(reply.text == #"{"enabled":[]}"#)
  }

  @Test("An enrolled device") func anEnrolledDevice() throws {
    let portal = try Portal(TokenServerProcess())
    let device = try DeviceClient.enrolled(at: portal.server, as: "alice@example.org")
    let user = "/oauth/api/v4/authenticate/user/alice%40example.org"
    #expect(
      try portal.get("\(user)/device/\(device.clientID)/enabled").json["enabled"] as? [String] == ["login", "payment"])
    let options = try portal.get("\(user)/enabled").json["enabled"] as? [[String: any Sendable]] ?? []
    #expect(options.map { $0["type"] as? String } == ["login", "payment"])
    #expect(options.first?["method"] as? String == "PUSH")
    #expect(options.first?["sms_fallback_allowed"] as? Bool == false)
    let apps = options.first?["apps_enrolled_for_push"] as? [[String: String]]
    #expect(
      apps == [
        [
          "app_id": "approval-token", "app_name": "Approval Token", "device_id": device.clientID,
          "device_name": "Test device", "platform": "linux",
        ]
      ])
  }

  @Test("Version 3 lists applications") func version3ListsApplications() throws {
    let settings = "[mobile_authentication]\npush_enrollment_mode = \"override\"\nportal_platform_alias = \"android\""
    let portal = try Portal(TokenServerProcess(configuration: configuration(settings)))
    let device = try DeviceClient.enrolled(at: portal.server, as: "alice")
    let base = "/oauth/api/v3/authenticate/user/alice"
    let options = try portal.get("\(base)/enabled").json["enabled"] as? [[String: any Sendable]]
    #expect(
      options?.first?["apps_enrolled_for_push"] as? [[String: String]] == [
        ["id": "approval-token", "name": "Approval Token"]
      ])
    #expect(
      try portal.get("\(base)/application/approval-token/enabled").json["enabled"] as? [String] == ["login"])
    #expect(try portal.get("\(base)/application/other/enabled").json["enabled"] as? [String] == [])
    let started = try portal.start(["device_id": device.clientID]).json["device"] as? [String: any Sendable]
    #expect(started?["platform"] as? String == "android")
  }
}
