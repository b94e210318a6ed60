// SPDX-License-Identifier: Apache-2.0
import ServerTestSupport
import Testing

/// Authentication and permissions of portals, and the error responses.
@Suite(.timeLimit(.minutes(5))) struct PortalAccessTests {
  @Test("Basic and form credentials") func basicAndFormCredentials() throws {
    let portal = try Portal(TokenServerProcess())
    let url = portal.api + "/authenticate/user"
    let basic = try portal.server.curl("--user", "\(portal.id):\(portal.secret)", "--data", "type=login", url)
    let form = try portal.server.curl(
      "--data-urlencode", "client_id=\(portal.id)", "--data-urlencode", "client_secret=\(portal.secret)",
      "--data", "type=login", url)
    for reply in [basic, form] {
      #expect(reply.status == 400)
      #expect(reply.json["error_code"] as? Int == 1003)
    }
  }

  @Test("Wrong credentials", arguments: ["portal:wrong", "stranger:wrong", "portal:", ":"])
  func wrongCredentials(credentials: String) throws {
    let portal = try Portal(TokenServerProcess())
    let reply = try portal.server.curl("--user", credentials, portal.api + "/authenticate/user/alice/enabled")
    #expect(reply.status == 401)
    #expect(reply.json["error"] as? String == "invalid_client")
    #expect(reply.json["error_description"] is String)
    #expect(reply.headers["www-authenticate"]?.hasPrefix("Basic ") == true)
    #expect(reply.headers["content-type"] == "application/json;charset=UTF-8")
  }

  @Test("No credentials") func noCredentials() throws {
    let portal = try Portal(TokenServerProcess())
    #expect(try portal.server.curl(portal.api + "/users/alice/devices").status == 401)
    #expect(try portal.server.curl(portal.api + "/authenticate/transaction/x").status == 401)
  }

  @Test("Each API is a permission of its own") func eachAPIIsAPermissionOfItsOwn() throws {
    let server = try TokenServerProcess()
    let (id, secret) = try server.addPortal("shop", "--no-end-user")
    let refused = try server.curl("--user", "\(id):\(secret)", server.url + "/oauth/api/v4/users/alice/devices")
    #expect(refused.status == 403)
    #expect(refused.json["error"] as? String == "insufficient_permissions")
    #expect(
      try server.curl("--user", "\(id):\(secret)", server.url + "/oauth/api/v4/authenticate/user/alice/enabled").status
        == 200)
  }

  @Test("Nothing may be cached") func nothingMayBeCached() throws {
    let reply = try Portal(TokenServerProcess()).get("/oauth/api/v4/authenticate/user/alice/enabled")
    #expect(reply.headers["cache-control"] == "no-cache, no-store, must-revalidate")
    #expect(reply.headers["pragma"] == "no-cache")
    #expect(reply.headers["date"] != nil)
  }

  @Test(
    "Versions 1 and 2 are gone",
    arguments: ["/oauth/authenticate/user/alice/enabled", "/oauth/api/v2/authenticate/user/alice/enabled"])
  func versions1And2AreGone(path: String) throws {
    let server = try TokenServerProcess()
    #expect(try server.curl(server.url + path).status == 404)
  }

  @Test("Version 3 with several devices per user") func version3WithSeveralDevicesPerUser() throws {
    let portal = try Portal(TokenServerProcess())
    for reply in [
      try portal.get("/oauth/api/v3/authenticate/user/alice/enabled"),
      try portal.start(["app_id": "approval-token"], version: "v3"),
    ] {
      #expect(reply.status == 404)
      #expect(reply.json["error_code"] as? Int == 4001)
    }
  }

  @Test("Mobile authentication switched off") func mobileAuthenticationSwitchedOff() throws {
    let portal = try Portal(
      TokenServerProcess(configuration: configuration("[mobile_authentication]\nenabled = false")))
    for reply in [try portal.get("/oauth/api/v4/authenticate/user/alice/enabled"), try portal.start()] {
      #expect(reply.status == 404)
      #expect(reply.json["error_code"] as? Int == 1000)
    }
    // Earlier requests can be read and canceled; this one is unknown.
    for method in ["GET", "DELETE"] {
      let path = "/oauth/api/v4/authenticate/transaction/7e9b1f5c-0000-4000-8000-000000000000"
      #expect(try portal.send(method, path).json["error_code"] as? Int == 3004)
    }
  }

  @Test("Sms is disabled", arguments: ["sms", "sms/resend"], ["v3", "v4"])
  func smsIsDisabled(path: String, version: String) throws {
    let mode = "[mobile_authentication]\npush_enrollment_mode = \"single\""
    let portal = try Portal(TokenServerProcess(configuration: configuration(mode)))
    let reply = try portal.send("POST", "/oauth/api/\(version)/authenticate/user/alice/\(path)")
    #expect(reply.status == 404)
    #expect(reply.json["error_code"] as? Int == 3000)
  }

  @Test("A hostile body is refused") func aHostileBodyIsRefused() throws {
    let portal = try Portal(TokenServerProcess())
    let path = "/oauth/api/v4/authenticate/user"
    #expect(
      try portal.send("POST", path, "--data", "type=login&type=login").json["error"] as? String == "invalid_request")
    #expect(try portal.send("POST", path, "--data", "type=%zz").status == 400)
    #expect(try portal.send("POST", path, "--header", "Content-Type: text/plain", "--data", "x").status == 400)
    let large = try portal.server.curl(
      ["--user", "\(portal.id):\(portal.secret)", "--header", "Expect:", portal.server.url + path],
      input: [UInt8](repeating: UInt8(ascii: "a"), count: 300_000))
    #expect(large.status == 413)
  }
}
