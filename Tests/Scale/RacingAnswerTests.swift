// SPDX-License-Identifier: Apache-2.0
import Cryptography
import ReferenceProtocol
import ServerTestSupport
import Testing

/// Approvals and denials of one request at several servers at the same time.
@Suite(.timeLimit(.minutes(10)), .serialized) struct RacingAnswerTests {
  private static let configuration = """
    [[type]]
    name = "login"
    method = "push"
    request_expires_in = 600
    messages = { en = "Log in?" }
    """

  @Test("Of approvals and denials that reach four servers at the same time exactly one counts") func race() throws {
    let server = try TokenServerProcess(configuration: Self.configuration, servers: 4)
    let portal = try server.addPortal()
    let device = try DeviceClient.enrolled(at: server, as: "alice")
    for _ in 0..<10 {
      let transaction = try server.begin(on: device, as: portal)
      let answers = try [ApprovalAnswer.Decision.accept, .deny].map { try device.answer(transaction, $0) }
      let commands = try (0..<16).map { number -> Curl.Command in
        (
          try device.arguments(
            "POST", "/device/v1/requests/\(transaction)/answers",
            headers: ["Idempotency-Key: \(Random.uuid())"]),
          JSON.encode(answers[number % 2])
        )
      }
      let replies = try server.curl.race(commands)
      let endings = try replies.filter { $0.status == 200 }.map { try $0.decoded(RequestStatus.self) }
      #expect(Set(endings.map { "\($0.state) \($0.receipt ?? "")" }).count == 1, "\(replies.map(\.text))")
      let state = try #require(endings.first?.state)
      #expect(try server.result(of: transaction, as: portal).isAuthenticated == (state == .authenticated))
    }
  }
}
