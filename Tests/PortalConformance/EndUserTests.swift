// SPDX-License-Identifier: Apache-2.0
import Foundation
import ReferenceProtocol
import ServerTestSupport
import Testing

/// The end-user API: devices of a user.
@Suite(.timeLimit(.minutes(5))) struct EndUserTests {
  let portal: Portal
  let device: DeviceClient

  init() throws {
    portal = try Portal(TokenServerProcess())
    device = try DeviceClient.enrolled(at: portal.server, as: "alice")
  }

  private let devices = "/oauth/api/v4/users/alice/devices"

  @Test("Listed") func listed() throws {
    let listed = try #require(
      (portal.get(devices).expect(200).json["devices"] as? [[String: any Sendable]])?.first)
    #expect(listed["id"] as? String == device.clientID)
    #expect(listed["name"] as? String == "Test device")
    #expect(listed["application"] as? String == "Approval Token")
    #expect(listed["platform"] as? String == "linux")
    #expect(listed["createdAt"] is NSNumber)
    #expect(listed["lastLogin"] is NSNumber)
    #expect(listed["tokenTypes"] is [Any])
    #expect(listed["mobileAuthenticationEnabled"] as? Bool == true)
    #expect(listed["pushAuthenticationEnabled"] as? Bool == true)
  }

  @Test("Listed in version 3") func listedInVersion3() throws {
    let list = try portal.get("/oauth/api/v3/users/alice/devices").expect(200).json["devices"]
    let listed = try #require((list as? [[String: any Sendable]])?.first)
    #expect(
      Set(listed.keys) == [
        "id", "name", "application", "platform", "created_at", "last_login", "token_types",
        "mobile_authentication_enabled", "push_authentication_enabled",
      ])
  }

  @Test("Nobodys devices") func nobodysDevices() throws {
    let reply = try portal.get("/oauth/api/v4/users/nobody/devices")
    #expect(reply.status == 404)
    #expect(reply.text == #"{"error":"No devices found"}"#)
  }

  @Test("Deleted twice") func deletedTwice() throws {
    for _ in 1...2 { #expect(try portal.send("DELETE", "\(devices)/\(device.clientID)").status == 204) }
    #expect(try portal.send("DELETE", "\(devices)/never-was").status == 204)
    #expect(try portal.get(devices).status == 404)
    let start = try portal.start(["device_id": device.clientID])
    #expect(start.json["error_code"] as? Int == 1001)
  }

  @Test("Deleted all at once") func deletedAllAtOnce() throws {
    _ = try DeviceClient.enrolled(at: portal.server, as: "alice", profile: "PROF02")
    #expect(try portal.send("DELETE", devices).status == 204)
    #expect(try portal.get(devices).status == 404)
  }

  @Test("Deleted in bulk") func deletedInBulk() throws {
    let other = try DeviceClient.enrolled(at: portal.server, as: "alice", profile: "PROF02")
    let body = #"{"delete":["\#(device.clientID)","never-was"]}"#
    #expect(try portal.send("POST", devices, "--json", body).status == 204)
    let left = try portal.get(devices).json["devices"] as? [[String: any Sendable]] ?? []
    #expect(left.map { $0["id"] as? String } == [other.clientID])
    #expect(try portal.send("POST", devices, "--json", #"{"delete":1}"#).status == 400)
  }

  @Test("Disabled") func disabled() throws {
    let path = "\(devices)/\(device.clientID)"
    for operation in ["disablePushAuthentication", "disableMobileAuthentication", "disableFingerprint"] {
      for _ in 1...2 { #expect(try portal.send("POST", "\(path)/\(operation)").status == 204) }
    }
    let listed = (try portal.get(devices).json["devices"] as? [[String: any Sendable]])?.first
    #expect(listed?["mobileAuthenticationEnabled"] as? Bool == false)
    #expect(listed?["pushAuthenticationEnabled"] as? Bool == false)
  }

  @Test("Disabling push keeps the keys") func disablingPushKeepsTheKeys() throws {
    #expect(try portal.send("POST", "\(devices)/\(device.clientID)/disablePushAuthentication").status == 204)
    let listed = (try portal.get(devices).json["devices"] as? [[String: any Sendable]])?.first
    #expect(listed?["mobileAuthenticationEnabled"] as? Bool == true)
    #expect(listed?["pushAuthenticationEnabled"] as? Bool == false)
  }
}
