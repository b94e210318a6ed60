// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import ControlProtocol
import FrontPanel
import HTTP
import MobileAuth
import Testing

@testable import TokenDaemon

@Suite(.timeLimit(.minutes(5))) struct TypedActivationTests {
  private func options(_ server: String, pins: [String] = []) -> ControlRequest {
    var options = EnrollmentOptions(uri: "")
    options.server = server
    options.pins = pins
    return .enroll(options)
  }

  @Test("A typing error is shown, and the code is asked for again") func typingError() async throws {
    let fixture = try ServiceFixture()
    let running = [Task { await fixture.board.panel.run() }, Task { _ = try? await fixture.service.run() }]
    let enrollment = Task {
      try await fixture.answer(options("https://auth.example.org"), as: EnrollmentResponse.self)
    }
    for (number, code) in ["1234567890123", "123456789015"].enumerated() {
      try await type(code, in: fixture)
      try await fixture.until("refusal \(number + 1)") {
        fixture.panel.shown.count { $0 == .noSuchChoice } == number + 1
      }
    }
    // The twelve digits have the check digit 1.
    try await type("1234567890151", in: fixture)
    await #expect(throws: TokenServerError.self) { try await enrollment.finished() }
    for task in running { task.cancel() }
    for task in running { try await task.finished() }
  }

  private func type(_ code: String, in fixture: ServiceFixture) async throws {
    try await fixture.until("a prompt for digits") {
      let (shown, readiness) = await (fixture.board.panel.showing, fixture.board.panel.readiness)
      return shown == .numberWanted && readiness == .counts
    }
    let keys = code.map(String.init) + ["enter"]
    #expect(try await fixture.answer(.simulate(.keys(keys)), as: Done.self).ignored == nil)
  }

  @Test(
    "An address that is none is refused before the code is asked for",
    arguments: ["http://auth.example.org", "auth.example.org", "https://a/b", "https://", "https://a&code=1"])
  func wrongServer(server: String) async throws {
    let fixture = try ServiceFixture()
    let request = options(server)
    let error = try await #require(throws: (any Error).self) { try await fixture.handler.answer(request) { _ in } }
    #expect(CommandError(explaining: error)?.code == .badData, "\(error)")
  }

  @Test("So is a pin that is none") func wrongPin() async throws {
    let fixture = try ServiceFixture()
    let request = options("https://auth.example.org", pins: ["A"])
    let error = try await #require(throws: (any Error).self) { try await fixture.handler.answer(request) { _ in } }
    #expect(CommandError(explaining: error)?.code == .badData, "\(error)")
  }
}
