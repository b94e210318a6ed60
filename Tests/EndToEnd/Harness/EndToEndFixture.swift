// SPDX-License-Identifier: Apache-2.0
import ProgramHarness
import Testing

/// A token server, one enrolled token and a portal, as processes.
struct EndToEndFixture: Sendable {
  let folder: TemporaryDirectory
  let server: TestServer
  let token: TestToken
  let portal: Portal
  /// The device id in the portal API.
  let device: String
  /// The name of alice's account on the token.
  let account: String
  /// The proxy between the token and the server; nil without one.
  var proxy: DisconnectingProxy?

  /// Waits until the server has answered all that tokens have sent through the proxy, also killed ones: the state at
  /// the server is final then.
  func allIsAnswered() async throws { try await #require(proxy).pause() }

  func ask(
    type: String = "login", callback: String = "http://127.0.0.1:9/", message: String = "Log in to the test?"
  ) async throws -> String {
    try await portal.ask(on: device, type: type, callback: callback, message: message)
  }

  /// Waits until the token logs that the transaction has ended.
  /// - Parameter kind: the kind of the audit entry.
  /// - Returns: the outcome as in the audit chain.
  func settled(_ transaction: String, as kind: String = "settled") async throws -> String {
    try await token.ending(of: transaction, as: kind)
  }

  /// Expects exactly one audit entry for the removal, and as the last entry: `removed` from the command, or `wiped`
  /// from the running service if the server notified the service first.
  func expectRemoval() async throws {
    let audit = try await token.audit()
    #expect(audit.count { ["removed", "wiped"].contains($0.kind) } == 1, "\(audit)")
    #expect(audit.last.map { ["removed", "wiped"].contains($0.kind) } == true, "\(audit)")
  }
}

/// Runs `body` with alice enrolled and the token connected, verifies the audit chain, and removes all files.
/// - Parameters:
///   - types: the server's `[[type]]` entries in addition to `login` and `payment`.
///   - board: the text of a board profile; nil for the profile `simulated` with its default times.
///   - proxy: a proxy between the token and the server.
///   - launcher: a command that runs the token's program.
///   - makeToken: makes the token with this state and this board; nil for one with `launcher`.
func withScene(
  types: String = "", board: String? = QuickBoard.withButton, behind proxy: DisconnectingProxy? = nil,
  launcher: [String] = [], makeToken: ((_ state: String, _ board: String) -> TestToken)? = nil,
  _ body: (EndToEndFixture) async throws -> Void
) async throws {
  let folder = try TemporaryDirectory()
  defer { folder.remove() }
  let server = try await TestServer(in: folder, behind: proxy, types: types)
  defer { server.end() }
  try await server.start()
  let profile = try board.map { try folder.write($0, to: "board.toml") }
  let (state, boardName) = (folder.file("token"), profile ?? "simulated")
  let token = makeToken?(state, boardName) ?? TestToken(state: state, board: boardName, launcher: launcher)
  defer { token.end() }
  struct Enrolled: Decodable { let account: String }
  let enrolled = try await token.enroll(try await server.activation(for: "alice")).succeeded().decoded(Enrolled.self)
  try await token.startConnected()
  let portal = server.portal
  let device = try #require(try await portal.devices().first).id
  let fixture = EndToEndFixture(
    folder: folder, server: server, token: token, portal: portal, device: device, account: enrolled.account,
    proxy: proxy)
  try await body(fixture)
  #expect(try await token.provesItsLog())
}
