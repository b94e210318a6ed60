// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import TestAM
import Testing
import Vault

@testable import MobileAuth
@testable import PingAMAdapter

@Suite(.timeLimit(.minutes(5))) struct `The history of an account` {
  @Test func `Has the delivered messages, the newest first, and how they ended`() async throws {
    let world = try AMWorld()
    let account = try await world.enrolled()
    func history() throws -> [MessageFacts] {
      let now = world.timekeeper.wallClockMilliseconds
      return try world.vault.messages(of: account.id).map { try PingAM.facts(of: $0, for: account, now: now) }
    }
    #expect(try history().isEmpty)
    try world.bring()
    let server = try world.server()
    _ = try await server.deliver(try await world.answer(server, .doublePress))
    world.timekeeper.advance(by: .seconds(1))
    try world.bring(.challenge)
    #expect(try history().map(\.state) == [.pending, .denied])
    #expect(try history().map(\.type) == ["push with a number", "push"])
    let newest = try #require(try history().first)
    #expect(newest.account == account.id && newest.message?.isEmpty == false)
    #expect(newest.receivedAtMilliseconds == world.timekeeper.wallClockMilliseconds)
    world.timekeeper.advance(by: .seconds(120))
    #expect(try history().map(\.state) == [.expired, .denied])
  }

  @Test func `Has no texts of a message that another secret signed`() async throws {
    let world = try AMWorld()
    let account = try await world.enrolled()
    try world.bring()
    let anew = try await AMWorld().enrolled()
    let message = try #require(try world.vault.messages(of: account.id).first)
    let facts = try PingAM.facts(of: message, for: anew, now: world.timekeeper.wallClockMilliseconds)
    #expect(facts.state == .pending && facts.type == nil && facts.message == nil && facts.context == nil)
  }
}
