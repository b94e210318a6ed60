// SPDX-License-Identifier: Apache-2.0
import ProgramHarness
import TestAM
import Testing

/// The scene of AM, with a real mosquitto that delivers its messages.
func withPingAMSceneAtBroker(
  _ body: @Sendable (PingAMFixture, TestBroker) async throws -> Void
) async throws {
  try await withPingAMScene(by: .broker) { fixture in try await body(fixture, try #require(fixture.broker)) }
}

extension TestBroker {
  /// The table `[mqtt]` of a token that subscribes at this broker.
  /// - Parameter more: additional lines of the table.
  func settings(_ more: String) throws -> String {
    let password = try directory.write(Self.password, to: "token-password")
    return """
      [mqtt]
      broker = "localhost:\(port)"
      authorities = "\(authority)"
      username = "\(Self.user)"
      password_file = "\(password)"
      \(more)
      """
  }
}

extension PingAMFixture {
  func mailbox(of account: String) async throws -> String {
    struct Response: Decodable { let mailbox: String }
    return try await token.command("mailbox", account, "--json").succeeded().decoded(Response.self).mailbox
  }

  /// Waits until the message is shown, holds the button, and waits until AM has the answer.
  /// - Parameter mark: a position in the log; only later lines count.
  func accept(
    _ push: TestAM.Push, at realm: TestAM? = nil, from mark: Int = 0, within limit: Duration = patience
  ) async throws {
    let opened = try await token.log.line(with: "opened request ", from: mark, within: limit)
    let name = String(try #require(opened.firstMatch(of: /opened request ([0-9a-f-]{36})/)?.1))
    try await token.answer(name, with: .hold, from: mark)
    try await token.log.line(with: "settled request \(name)", from: mark)
    #expect((realm ?? am).verify(push) == .isTrue)
  }
}

extension TestBroker {
  /// Publishes a message as a push delegate does.
  func publish(_ push: TestAM.Push, to mailbox: String) async throws {
    try await publish(String(decoding: push.envelope, as: UTF8.self), to: mailbox)
  }
}
