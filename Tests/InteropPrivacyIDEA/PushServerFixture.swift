// SPDX-License-Identifier: Apache-2.0
import Foundation
import ProgramHarness
import Testing

/// privacyIDEA, a portal that uses curl, and an approval token as a process with the simulated board.
struct PushServerFixture: Sendable {
  let folder: TemporaryDirectory
  let server: PushServer
  let token: TestToken
  private let configuration: @Sendable (_ settings: String) -> String

  /// A login whose request is shown.
  struct Login: Sendable {
    /// The portal's transaction id.
    let portal: String
    /// The token's transaction id.
    let token: String
    /// The option that the portal shows, if the token requires it.
    let presence: String?
    /// The announcement in the token's log.
    let announcement: String
    let mark: Int
  }

  /// - Parameters:
  ///   - launcher: a command that runs the token's program.
  ///   - settings: additional lines of the table `[push]`, and further tables.
  ///   - pace: the intervals of the polls.
  ///   - authorities: certificate authorities in addition to the authority of `server`.
  init(
    at server: PushServer, launcher: [String] = [], settings: String = "",
    pace: String = "fast_ms = 300\nidle_seconds = 2", and others: [PushServer] = []
  ) throws {
    self.server = server
    folder = try TemporaryDirectory()
    let authorities = try ([server] + others).map { try String(contentsOfFile: $0.authority, encoding: .utf8) }
    let authority = try folder.write(authorities.joined(), to: "ca.pem")
    configuration = { settings in
      """
      [tls]
      authorities = "\(authority)"
      [push]
      \(pace)
      key_bits = 2048
      \(settings)
      """
    }
    token = TestToken(
      state: folder.file("token"), board: try folder.write(QuickBoard.withKeypad, to: "board.toml"), launcher: launcher,
      config: try folder.write(configuration(settings), to: "config.toml"))
  }

  /// Replaces the additional lines of the configuration. The token reads it when it starts.
  func configure(settings: String) throws { _ = try folder.write(configuration(settings), to: "config.toml") }

  /// Stops the token and verifies its audit chain.
  func end() async throws {
    #expect(try await token.provesItsLog())
    token.end()
    folder.remove()
  }

  /// Enrolls at the running service, and waits until it polls with the new keys.
  func enroll(_ url: String, as name: String? = nil) async throws {
    let mark = try token.log.mark
    try await token.enroll(url, name: name).succeeded()
    try await token.log.line(with: "] connected to", from: mark)
  }

  /// Starts a login at the portal, and waits until its request is shown.
  func login(with serial: String, account: String = "desk") async throws -> Login {
    try await asked(account) { try server.trigger(serial) }
  }

  func asked(
    _ account: String, _ trigger: () throws -> (transaction: String, presence: String?)
  ) async throws -> Login {
    let mark = try token.log.mark
    let (transaction, presence) = try trigger()
    return try await asked(account, transaction, presence, from: mark)
  }

  /// Waits until the request of a started login is shown.
  func asked(
    _ account: String, _ transaction: String, _ presence: String? = nil, from mark: Int
  ) async throws -> Login {
    let line = try await token.log.line(
      with: "opened request ", " account \(account):", from: mark)
    let name = try #require(line.firstMatch(of: /opened request ([0-9a-f-]{36})/)?.1)
    return Login(portal: transaction, token: String(name), presence: presence, announcement: line, mark: mark)
  }

  /// The outcome in the token's log.
  func ending(of login: Login) async throws -> String {
    try await token.ending(of: login.token, from: login.mark)
  }

  /// Acts, waits for the outcome in the token's log, and compares the portal's result.
  func expect(
    _ gesture: UserGesture, on login: Login, toEndAs ending: String, seenAs status: String, finally: String? = nil,
    with serial: String, sourceLocation: SourceLocation = #_sourceLocation
  ) async throws {
    #expect(try server.challengeStatus(login.portal) == "pending", sourceLocation: sourceLocation)
    try await token.answer(login.token, with: gesture, from: login.mark)
    let reported = try await self.ending(of: login)
    #expect(reported.hasPrefix(ending), sourceLocation: sourceLocation)
    #expect(try server.challengeStatus(login.portal) == status, sourceLocation: sourceLocation)
    if let finally {
      #expect(try server.finalize(serial, login.portal) == finally, sourceLocation: sourceLocation)
    }
  }
}

/// Runs `body` with one running token that is enrolled as "desk".
func withDesk(
  launcher: [String] = [], and others: [PushServer] = [],
  _ body: (PushServerFixture, _ serial: String) async throws -> Void
) async throws {
  let server = try PushServer.shared.get()
  let fixture = try PushServerFixture(at: server, launcher: launcher, and: others)
  try await fixture.token.start()
  let (serial, url) = try server.makeToken()
  try await fixture.enroll(url, as: "desk")
  try await body(fixture, serial)
  try await fixture.end()
}
