// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import ServerBackends
import TestAM
import Testing
import Vault

@testable import MobileAuth
@testable import PingAMAdapter

@Suite("The history of an account", .timeLimit(.minutes(5))) struct HistoryTests {
  @Test("Has the delivered messages, the newest first, and how they ended")
  func hasTheDeliveredMessagesTheNewestFirstAndHowTheyEnded() async throws {
    let fixture = try PingAMFixture()
    let account = try await fixture.enrolled()
    func history() throws -> [MessageSummary] {
      let now = fixture.clock.wallClockMilliseconds
      return try fixture.vault.messages(of: account.id).map { try PingAM.summary(of: $0, for: account, now: now) }
    }
    #expect(try history().isEmpty)
    try fixture.deliver()
    let server = try fixture.server()
    _ = try await server.deliver(try await fixture.answer(server, .doublePress))
    fixture.clock.advance(by: .seconds(1))
    try fixture.deliver(.challenge)
    #expect(try history().map(\.state) == [.pending, .denied])
    #expect(try history().map(\.type) == ["push with a number", "push"])
    #expect(try history().map(\.pushType) == ["challenge", "default"])
    let newest = try #require(try history().first)
    #expect(newest.account == account.id && newest.message?.isEmpty == false)
    #expect(newest.receivedAtMilliseconds == fixture.clock.wallClockMilliseconds)
    fixture.clock.advance(by: .seconds(120))
    #expect(try history().map(\.state) == [.expired, .denied])
  }

  @Test("Has no texts of a message that another secret signed") func hasNoTextsOfAMessageThatAnotherSecretSigned()
    async throws
  {
    let fixture = try PingAMFixture()
    let account = try await fixture.enrolled()
    try fixture.deliver()
    let again = try await PingAMFixture().enrolled()
    let message = try #require(try fixture.vault.messages(of: account.id).first)
    let summary = try PingAM.summary(of: message, for: again, now: fixture.clock.wallClockMilliseconds)
    #expect(summary.state == .pending && summary.type == nil && summary.message == nil && summary.context == nil)
  }
}
