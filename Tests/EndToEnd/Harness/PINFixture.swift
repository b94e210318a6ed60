// SPDX-License-Identifier: Apache-2.0
import Foundation
import ProgramHarness
import Testing

extension EndToEndFixture {
  /// The PINs that the users choose at the start of the scene.
  static let pins = ["alice": "13589", "bob": "80261"]
  static let wrongPIN = "24601"

  /// Starts a request that requires the PIN; waits until it is shown.
  func askForPIN(
    of user: String = "alice", type: String = "payment", callback: String = "http://127.0.0.1:9/"
  ) async throws -> String {
    let transaction = try await portal.ask(user, on: device, type: type, callback: callback)
    try await token.log.line(with: "opened request \(transaction) account \(user)")
    return transaction
  }

  /// Starts a request and expects that this PIN approves it.
  func expectApproval(of user: String = "alice", typing pin: String) async throws {
    let transaction = try await askForPIN(of: user)
    try await token.type(pin)
    #expect(try await settled(transaction).hasPrefix("approved, receipt "))
    #expect(try await portal.finalResult(of: transaction).isAuthenticated)
    #expect(try await server.pinFailures(of: user, on: device) == 0)
  }
}

/// Like `withScene`, at a server with PINs and with a token that has a keypad.
/// - Parameters:
///   - users: the users to enroll, each with the PIN in `EndToEndFixture.pins`. An account has its user's name.
///   - settings: PIN settings of the server's `[application]`.
///   - board: the text of a board profile.
///   - isSplit: as for `TestToken`.
///   - launcher: a command that runs the token's program.
///   - configuration: makes the text of the token's configuration file.
func withPINScene(
  users: [String] = ["alice"], settings: String = "max_pin_attempts = 3", types: String = "",
  board: String = QuickBoard.withKeypad, behind proxy: DisconnectingProxy? = nil,
  isSplit: Bool = TestToken.areSplit, launcher: [String] = [], configuration: (TestServer) -> String? = { _ in nil },
  _ body: (EndToEndFixture) async throws -> Void
) async throws {
  let folder = try TemporaryDirectory()
  defer { folder.remove() }
  let server = try await TestServer(in: folder, behind: proxy, types: types, pin: settings)
  defer { server.end() }
  try await server.start()
  let token = TestToken(
    state: folder.file("token"), board: try folder.write(board, to: "board.toml"), launcher: launcher,
    config: try configuration(server).map { try folder.write($0, to: "token.toml") }, isSplit: isSplit)
  defer { token.end() }
  try await token.start()
  for user in users {
    try await server.addUser(user)
    let mark = try token.log.mark
    let pin = try #require(EndToEndFixture.pins[user])
    try await token.enroll(try await server.activation(for: user), name: user, choosing: pin).succeeded()
    try await token.log.line(with: "] connected to", from: mark)
  }
  let portal = server.portal
  let device = users.isEmpty ? "" : try #require(try await portal.devices(of: users[0]).first).id
  try await body(
    EndToEndFixture(
      folder: folder, server: server, token: token, portal: portal, device: device, account: users.first ?? "",
      proxy: proxy))
  #expect(try await token.provesItsLog())
}

// MARK: Changes

extension EndToEndFixture {
  func changePIN(from old: String, to new: String) async throws {
    let change = try token.begin("pin", "change")
    try await token.type(old)
    try await token.choose(new)
    try await change.outcome().succeeded()
  }

  /// An approval with the PIN, a PIN change, an outage of the server, a reload of the accounts, and a restart.
  func usePINThroughOutageAndRestart() async throws {
    try await expectApproval(typing: "13589")
    try await changePIN(from: "13589", to: "46802")
    try await server.stop()
    try await token.log.line(with: "not connected to")
    try await server.start()
    // Renaming makes the service read its accounts again.
    try await token.command("rename", "alice", "alicia").succeeded()
    try await token.stop()
    try await token.startConnected()
  }

  /// Copies the token's storage. The token is stopped meanwhile.
  func saveImage(_ name: String) async throws -> String {
    try await token.stop()
    let image = folder.file(name)
    try FileManager.default.copyItem(atPath: token.state, toPath: image)
    try await token.startConnected()
    return image
  }

  /// Restores an old copy of the token's storage.
  func putBack(_ image: String) async throws {
    try await token.stop()
    try FileManager.default.removeItem(atPath: token.state)
    try FileManager.default.copyItem(atPath: image, toPath: token.state)
    try await token.start()
  }
}
