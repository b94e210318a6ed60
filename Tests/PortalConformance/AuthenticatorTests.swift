// SPDX-License-Identifier: Apache-2.0
import Foundation
import ReferenceProtocol
import Secrets
import ServerTestSupport
import Testing

/// Authenticators other than the PIN in the portal API: availability, start, results, and the end-user API.
@Suite(.timeLimit(.minutes(5))) struct AuthenticatorTests {
  let portal: Portal
  let device: DeviceClient

  static let settings = """
    [application]
    pin = true
    biometric = true
    custom_authenticators = true
    [[authenticator]]
    id = "finger"
    name = "Fingerprint"
    kind = "biometric"
    [[authenticator]]
    id = "badge"
    name = "Badge"
    kind = "custom"
    scripts = "badge"
    time_limit_seconds = 60
    """

  static let types = """
    [[type]]
    name = "touch"
    method = "push_with_fingerprint"
    request_expires_in = 600
    [[type]]
    name = "touch-only"
    method = "push_with_fingerprint"
    request_expires_in = 600
    fallback = "none"
    [[type]]
    name = "badge-only"
    method = "push_with_custom_authenticator"
    request_expires_in = 600
    authenticator = "badge"
    fallback = "none"
    [[type]]
    name = "shown"
    method = "push"
    request_expires_in = 600
    requires_display = true
    """

  init() throws {
    portal = try Portal(TokenServerProcess(configuration: configuration(Self.settings, types: Self.types)))
    device = try DeviceClient.enrolledWithPIN(at: portal.server, as: "alice")
    _ = try TestScripts(in: portal.server.directory + "/badge")
    try device.announce(biometric: ["finger"], custom: ["badge"])
  }

  private func enabled() throws -> [String] {
    let path = "/oauth/api/v4/authenticate/user/alice/device/\(device.clientID)/enabled"
    return try portal.get(path).expect(200).json["enabled"] as? [String] ?? []
  }

  private func tokenTypes() throws -> [String]? {
    let listed = try portal.get("/oauth/api/v4/users/alice/devices").expect(200).json["devices"]
    return (listed as? [[String: any Sendable]])?.first?["tokenTypes"] as? [String]
  }

  @Test("Availability follows registration, fallback and the display") func availability() throws {
    #expect(try enabled() == ["touch"])
    _ = try device.registerAuthenticator("finger")
    #expect(try enabled() == ["touch", "touch-only"])
    _ = try device.registerAuthenticator("badge", data: [1])
    #expect(try enabled() == ["touch", "touch-only", "badge-only"])
    try device.announce(biometric: ["finger"], custom: ["badge"], display: .text)
    #expect(try enabled() == ["touch", "touch-only", "badge-only", "shown"])
    let options = try portal.get("/oauth/api/v4/authenticate/user/alice/enabled").json["enabled"]
    let methods = (options as? [[String: any Sendable]])?.map { $0["method"] as? String }
    #expect(
      methods == [
        "PUSH_WITH_FINGERPRINT", "PUSH_WITH_FINGERPRINT", "PUSH_WITH_CUSTOM_AUTHENTICATOR", "PUSH",
      ])
    try device.announce()
    let refused = try portal.start(["device_id": device.clientID, "type": "shown"])
    #expect(refused.status == 404 && refused.json["error_code"] as? Int == 1001)
  }

  @Test("The start says how the user is asked") func start() throws {
    func method(_ type: String) throws -> String? {
      try portal.start(["device_id": device.clientID, "type": type]).expect(200).json["auth_method"] as? String
    }
    #expect(try method("touch") == "push_with_pin")
    _ = try device.registerAuthenticator("finger")
    #expect(try method("touch") == "push_with_fingerprint")
  }

  @Test("The result names the method that was used, also after a fallback") func results() throws {
    let token = try device.registerAuthenticator("finger")
    for (useFinger, method) in [(true, "push_with_fingerprint"), (false, "push_with_pin")] {
      let transaction = try portal.transaction(["device_id": device.clientID, "type": "touch"])
      let fetched = try device.fetch(transaction)
      let answer =
        try useFinger ? device.answer(fetched, with: "finger", token) : device.answerWithFallback(fetched)
      try device.send(answer, to: transaction).expect(200)
      let result = try portal.result(transaction)
      #expect(result["is_authenticated"] as? Bool == true)
      #expect(result["authentication_method"] as? String == method)
      #expect(result["used_authentication_attempts"] as? Int == (useFinger ? nil : 1))
    }
    let denied = try portal.transaction(["device_id": device.clientID, "type": "touch"])
    try device.deny(denied, .declined).expect(200)
    #expect(try portal.result(denied)["authentication_method"] as? String == "push_with_fingerprint")
  }

  @Test("The device is listed with its kinds of tokens, and the portal can disable the fingerprint") func endUser()
    throws
  {
    #expect(try tokenTypes() == ["access_token", "refresh_token"])
    let token = try device.registerAuthenticator("finger")
    _ = try device.registerAuthenticator("badge", data: [1])
    #expect(try tokenTypes() == ["access_token", "refresh_token", "fingerprint", "custom_authenticator"])
    let only = try portal.transaction(["device_id": device.clientID, "type": "touch-only"])
    let path = "/oauth/api/v4/users/alice/devices/\(device.clientID)/disableFingerprint"
    for _ in 1...2 { try portal.send("POST", path).expect(204) }
    #expect(try tokenTypes() == ["access_token", "refresh_token", "custom_authenticator"])
    #expect(try device.logIn(with: "finger", token).status == 400)
    #expect(try portal.result(only).reason == "invalid_request")
    try device.logIn(with: "badge", #require(device.refreshToken), data: [1]).expect(400)
    #expect(try portal.send("POST", "/oauth/api/v4/users/nobody/devices/x/disableFingerprint").status == 204)
  }

  @Test("Introspection names the authenticator") func introspection() throws {
    let backEnd = try portal.server.addPortal("shop", "--introspection")
    let finger = try device.registerAuthenticator("finger")
    let badge = try device.registerAuthenticator("badge", data: [1])
    func introspect() throws -> [String: any Sendable] {
      try portal.server.curl(
        "--user", "\(backEnd.id):\(backEnd.secret)", "--data", "token=\(device.userToken ?? "")",
        portal.server.url + "/oauth/api/v2/token/introspect"
      ).expect(200).json
    }
    try device.logIn(with: "finger", finger).expect(200)
    #expect(try introspect()["amr"] as? [String] == ["fpt", "pop"])
    #expect(try introspect()["authenticator"] as? String == "finger")
    try device.logIn(with: "badge", badge, data: [1]).expect(200)
    #expect(try introspect()["amr"] as? [String] == ["custom", "pop"])
    #expect(try introspect()["authenticator"] as? String == "badge")
  }
}
