// SPDX-License-Identifier: Apache-2.0
import Hummingbird
import Logging
import ReferenceProtocol
import ServerTestSupport
import Testing

@testable import TokenServerCore
@testable import TokenServerHTTP
@testable import TokenServerStore

/// The bodies of errors.
@Suite(.timeLimit(.minutes(5)), .mayBlock) struct ErrorBodyTests {
  private struct UnexpectedError: Error {}

  /// Returns the response to a request whose handler throws an error.
  private func response(to path: String, throwing error: any Error) async throws -> Response {
    let log = DeviceLog(Logger(label: "test") { _ in SwiftLogNoOpLogHandler() })
    return try await FailingRequests(log).response(to: path, throwing: error)
  }

  @Test("What the server cannot store, and its faults, are problem details for devices, and JSON for portals")
  func faults() async throws {
    let errors: [(any Error, Int)] = [
      (StorageUnavailableError(reason: "full", description: "full"), 503), (UnexpectedError(), 500),
    ]
    for (error, status) in errors {
      let device = try await response(to: "/device/v1/pending", throwing: error)
      #expect(device.status.code == status && device.headers[.contentType] == "application/problem+json")
      let portal = try await response(to: "/oauth/api/v4/x", throwing: error)
      #expect(portal.status.code == status && portal.headers[.contentType] == "application/json;charset=UTF-8")
      #expect((device.headers[.retryAfter] != nil) == (status == 503))
    }
  }

  @Test("Every error in the form of a portal's request has the number of a wrong parameter, and names no Swift type")
  func portalForms() throws {
    let ready = try ReadyServer()
    let (server, portal) = (ready.server, ready.portal)
    func send(_ body: String, _ options: String..., to path: String) throws -> Curl.Reply {
      try server.curl(
        ["--user", "\(portal.id):\(portal.secret)", "--data", body] + options + [server.url + "/oauth/api/v4" + path])
    }
    let start = "/authenticate/user"
    let many = (1...65).map { "a\($0)=1" }.joined(separator: "&")
    for reply in [
      try send("type=a&type=a", to: start), try send(many, to: start), try send("type=%zz", to: start),
      try send("{}", "--header", "Content-Type: application/json", to: start), try send("user_id=alice", to: start),
    ] {
      #expect(reply.status == 400 && reply.json["error_code"] as? Int == 1003, "\(reply)")
    }
    for (body, text) in [
      ("[]", "the whole text is not an object"), (#"{"delete":"x"}"#, "\"delete\" is not a list"),
      (#"{"delete":[1]}"#, "\"delete[0]\" is not a string"),
    ] {
      let reply = try send(body, to: "/users/alice/devices")
      let description = reply.json["error_description"] as? String
      #expect(reply.status == 400 && description?.contains(text) == true, "\(reply)")
    }
    let url = "type=login&user_id=alice&device_id=x&message=m&callback_uri=https://u:p@h.example/"
    let refused = try send(url, to: start)
    #expect((refused.json["error_description"] as? String)?.contains("has a user or password") == true, "\(refused)")
  }
}
