// SPDX-License-Identifier: Apache-2.0
import ServerTestSupport
import Testing

/// Copies of one call at several servers at the same time.
@Suite(.timeLimit(.minutes(10))) struct ReplayTests {
  @Test("A proof and a client assertion are accepted once, at whichever of four servers") func replays() throws {
    let server = try TokenServerProcess(
      configuration: """
        access_log = true
        [[type]]
        name = "login"
        method = "push"
        """, servers: 4)
    let device = try DeviceClient.enrolled(at: server, as: "alice")
    // Now the device has a nonce.
    try device.call("GET", "/device/v1/pending").expect(200)
    let group = try #require(server.group)
    let copies = [
      "/device/v1/pending": try device.arguments("GET", "/device/v1/pending"),
      "/oauth/token": try device.tokenArguments(["grant_type=client_credentials"]),
    ]
    for (path, arguments) in copies {
      let before = group.logs.map(\.utf8.count)
      let statuses = try server.curl.race(Array(repeating: (arguments, nil), count: 24)).map(\.status)
      #expect(statuses.count { $0 == 200 } == 1, "\(path): \(statuses)")
      #expect(statuses.allSatisfy { [200, 400, 401].contains($0) }, "\(path): \(statuses)")
      let logs = zip(group.logs, before).map { String(decoding: $0.utf8.dropFirst($1), as: UTF8.self) }
      #expect(logs.allSatisfy { $0.contains(path) }, "a server had no part in it")
    }
  }
}
