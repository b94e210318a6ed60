// SPDX-License-Identifier: Apache-2.0
import Foundation
import ReferenceProtocol
import Secrets
import ServerTestSupport
import Testing

/// Attempts with wrong PINs at several servers at the same time.
@Suite(.timeLimit(.minutes(10)), .serialized) struct WrongPINTests {
  private static let configuration = """
    access_log = true
    [application]
    pin = true
    max_pin_attempts = 5
    [[type]]
    name = "login"
    method = "push"
    """

  @Test("Of 300 wrong PINs at four servers exactly the limit is verified") func wrongPINs() throws {
    let server = try TokenServerProcess(configuration: Self.configuration, servers: 4)
    let device = try DeviceClient.enrolledWithPIN(at: server, as: "alice")
    let wrong = SecretBytes(copying: [UInt8](repeating: 7, count: 32))
    let commands = try (0..<300).map { _ -> Curl.Command in
      (try device.tokenArguments(device.loginForm(wrong)), nil)
    }
    let group = try #require(server.group)
    let before = group.logs.map(\.utf8.count)
    let replies = try server.curl.race(commands)
    #expect(replies.compactMap { $0.counts[1] }.sorted() == [1, 2, 3, 4, 5])
    #expect(replies.filter { $0.counts[2] == 0 }.count == 1)
    // The others were refused: because the user is deregistered, or because they waited too long for their turn.
    let others = replies.filter { $0.counts[1] == nil }
    #expect(others.allSatisfy { $0.status == 503 || $0.json["error_code"] as? Int == 9003 }, "\(others.map(\.text))")
    #expect(others.contains { $0.status != 503 })
    let logs = zip(group.logs, before).map { String(decoding: $0.utf8.dropFirst($1), as: UTF8.self) }
    #expect(logs.allSatisfy { $0.contains("/oauth/token") }, "a server had no part in it")
    // The right PIN comes too late: the user is deregistered from the device, whichever server is asked.
    for _ in 0..<8 { #expect(try device.logInWithPIN().status != 200) }
  }
}
