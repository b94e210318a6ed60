// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import Cryptography
import Foundation
import ProgramHarness
import ReferenceProtocol
import ServerTestSupport
import Testing

/// A database whose connections stay open and that does not answer, for longer than servers and balancer wait.
@Suite(.timeLimit(.minutes(10)), .serialized) struct FrozenDatabaseTests {
  private static let configuration = """
    [application]
    pin = true
    max_pin_attempts = 5
    [[type]]
    name = "login"
    method = "push"
    request_expires_in = 600
    messages = { en = "Log in?" }
    """

  @Test("While the database does not answer requests get 503, and afterwards each answer and each PIN counts once")
  func frozen() async throws {
    let server = try TokenServerProcess(configuration: Self.configuration, servers: 2)
    let portal = try server.addPortal()
    let devices = try (0..<4).map { try DeviceClient.enrolledWithPIN(at: server, as: "user\($0)") }
    let keys = devices.map { _ in Random.uuid() }
    let transactions = try devices.enumerated().map { try server.begin(of: "user\($0)", on: $1, as: portal) }
    let answers = try zip(devices, transactions).map { try $0.answer($1, .accept) }
    let others = try zip(devices, transactions).map { try $0.answer($1, .deny) }
    var commands = try devices.indices.map { index -> Curl.Command in
      let path = "/device/v1/requests/\(transactions[index])/answers"
      let key = "Idempotency-Key: \(keys[index])"
      return (try devices[index].arguments("POST", path, headers: [key]), JSON.encode(answers[index]))
    }
    // Wrong PINs.
    commands += try devices.map { (try $0.tokenArguments($0.loginForm(Random.secret(32))), nil) }

    try TestPostgreSQL.freeze()
    do {
      defer { try? TestPostgreSQL.thaw() }
      let start = ContinuousClock.now
      let replies = try server.curl.race(commands)
      let time = start.duration(to: .now)
      #expect(replies.allSatisfy { $0.status == 503 }, "\(replies.map(\.text))")
      // 17 s for the answer, and 5 s for another connection, as in docs/operations.md.
      #expect(time < .seconds(26))
      // This needs no database: as soon as the balancer has taken out both servers there is no response.
      try await eventually("the balancer takes out the servers") { Self.isReached(server) ? nil : () }
      print("503 after \(time), no server at the balancer after \(start.duration(to: .now))")
    }

    try await eventually("the servers are back") { Self.isReached(server) ? () : nil }
    for index in devices.indices {
      let device = devices[index]
      let status = try await eventually("a receipt") {
        let reply = try device.send(answers[index], to: transactions[index], key: keys[index])
        return reply.status == 503 ? nil : try reply.expect(200).decoded(RequestStatus.self)
      }
      #expect(status.state == .authenticated)
      try device.send(others[index], to: transactions[index]).expect(409)
      #expect(try server.result(of: transactions[index], as: portal).isAuthenticated)
      // The attempt without a response may have been counted, once.
      let counts = try device.logInWithPIN(Random.secret(32)).expect(400).counts
      #expect(counts == [5, 1, 4] || counts == [5, 2, 3])
      try device.logInWithPIN().expect(200)
    }
  }

  private static func isReached(_ server: TokenServerProcess) -> Bool {
    (try? server.curl("--max-time", "5", server.url + "/.well-known/oauth-authorization-server"))?.status == 200
  }
}
