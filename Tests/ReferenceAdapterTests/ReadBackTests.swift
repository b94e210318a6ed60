// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import Cryptography
import HTTP
import MobileAuth
import OpenPGP
import ReferenceProtocol
import Secrets
import ServerBackends
import Testing

@testable import ReferenceAdapter

/// Requests with digits that the user must type.
@Suite("Digits to type", .timeLimit(.minutes(5))) struct ReadBackTests {
  private let server: FakeServer
  private let http: RecordingHTTPTransport

  init() throws {
    server = try FakeServer()
    http = server.makeHTTPTransport()
    _ = try server.adapter(http)
  }

  private func open(_ digits: String?, keypad: Bool = true) async throws -> (ReferenceServerClient, MobileAuthRequest) {
    var request = server.request()
    request.readBack = digits
    try server.serve(JSON.encode(request))
    let adapter = try server.reopened(
      http, capabilities: ApprovalCapabilities(BoardCapabilities(hasKeypad: keypad, hasColorLED: true)))
    return (adapter, try await adapter.open(server.pending))
  }

  @Test("The digits are part of the verified request") func opened() async throws {
    let (_, request) = try await open("1250")
    #expect(request.contents.readBack == EnteredDigits(typing: "1250") && request.contents.challenge == .confirmation)
    #expect(request.contents.type == "login, digits to type")
    #expect(try await open(nil).1.contents.readBack == nil)
  }

  @Test("Without a keypad the request can only be denied") func withoutKeypad() async throws {
    let (_, request) = try await open("1250", keypad: false)
    #expect(request.contents.challenge.obstacle == "digits must be typed, and there is no keypad")
  }

  @Test(
    "What cannot be typed is not handled",
    arguments: ["", "12,50", "12a", "\u{661}\u{662}", "-1", String(repeating: "9", count: 33), "1\n"])
  func malformed(digits: String) async throws {
    let error = await #expect(throws: TokenServerError.self) { _ = try await open(digits) }
    #expect(error?.number == 10018)
  }

  @Test("A board with a keypad announces that it can ask for them", arguments: [true, false])
  func announced(hasKeypad: Bool) {
    let capabilities = ApprovalCapabilities(BoardCapabilities(hasKeypad: hasKeypad, hasColorLED: true))
    #expect(capabilities.readBack == hasKeypad)
  }

  @Test("The answer repeats the digits; a denial does not", arguments: [true, false])
  func answered(isApproval: Bool) async throws {
    let (adapter, _) = try await open("1250")
    let state: RequestState = isApproval ? .authenticated : .rejected
    server.on("/requests/\(FakeServer.transaction)/answers") { _ in
      HTTPResponse(status: 200, body: JSON.encode(RequestStatus(state: state, receipt: "R")))
    }
    try await server.withHandler(adapter) { panel in
      await panel.until(challenges: 1)
      if isApproval {
        panel.perform(.typed("1250"))
        await panel.until(challenges: 2)
        panel.perform(.gesture(Gesture(.hold, held: .seconds(1))))
      } else {
        panel.perform(.gesture(Gesture(.doublePress, held: .zero)))
      }
      await panel.until(showing: .idle(pending: 0))
    }
    let sent = try #require(http.requests.last { $0.url.hasSuffix("/answers") })
    let message = try #require(bytes(base64: JSON.decode(SealedAnswer.self, from: sent.body).answer))
    let answer = try JSON.decode(ApprovalAnswer.self, from: server.server.open(message, from: server.token.certificate))
    #expect(answer.decision == (isApproval ? .accept : .deny) && answer.readBack == (isApproval ? "1250" : nil))
  }
}
