// SPDX-License-Identifier: Apache-2.0
import Foundation
import ProgramHarness
import Testing

/// Each earlier version of the token at the present server, and the reverse. `scripts/test compatibility` builds the
/// earlier programs; other runs skip this.
@Suite(.timeLimit(.minutes(10))) struct CompatibilityMatrix {
  struct Pair: Sendable, CustomTestStringConvertible {
    let token: ProgramVersion
    let server: ProgramVersion

    var testDescription: String { "token \(token.name), server \(server.name)" }
  }

  static let pairs = ProgramVersion.earlier.flatMap { version in
    [Pair(token: version, server: .present), Pair(token: .present, server: version)]
  }

  /// The sentence of `ProtocolMismatchError` ends in this, or in the same with the word "server".
  private static let refusal = ": update the token"

  @Test("An approval and a denial at the button work, or the programs name the one to update", arguments: pairs)
  func button(pair: Pair) async throws {
    try await withPrograms(pair, board: QuickBoard.withButton, withPIN: false) { token, server, portal in
      guard try await enroll(token, try await server.activation()) else { return }
      try await token.start()
      try await token.isConnected()
      let device = try #require(try await portal.devices().first).id

      let approved = try await portal.ask(on: device)
      try await token.hold()
      #expect(try await portal.finalResult(of: approved).isAuthenticated)
      try await token.shows("idle, connected")
      let denied = try await portal.ask(on: device)
      try await token.deny()
      #expect(try await portal.finalResult(of: denied).reason == "not_accepted")
      try await token.shows("idle, connected")
      try await expect([approved: "approved", denied: "denied"], of: token)
      #expect(try await server.transactions().map(\.state).sorted() == ["authenticated", "rejected"])
    }
  }

  @Test("A PIN is chosen, mistyped, typed and changed, or the programs name the one to update", arguments: pairs)
  func pin(pair: Pair) async throws {
    try await withPrograms(pair, board: QuickBoard.withKeypad, withPIN: true) { token, server, portal in
      try await token.start()
      guard try await enroll(token, try await server.activation(), choosing: "13589") else { return }
      try await token.isConnected()
      let device = try #require(try await portal.devices().first).id

      let payment = try await portal.ask(on: device, type: "payment")
      try await token.type("24601")
      try await token.type("13589")
      #expect(try await portal.finalResult(of: payment).isAuthenticated)
      #expect(try await server.devices().first?.users.first?.pinFailures == 0)
      try await token.shows("idle, connected")

      let change = try token.begin(["pin", "change"])
      try await token.type("13589")
      try await token.choose("80261")
      try await change.outcome().succeeded()
      let second = try await portal.ask(on: device, type: "payment")
      try await token.type("80261")
      #expect(try await portal.finalResult(of: second).isAuthenticated)
      try await token.shows("idle, connected")
      let denied = try await portal.ask(on: device, type: "payment")
      try await token.deny(at: Wanted.pin.rawValue)
      #expect(try await portal.finalResult(of: denied).reason == "not_accepted")
      try await token.shows("idle, connected")
      #expect(try await token.provesItsLog())
    }
  }

  @Test("After an update of one of two earlier programs, a waiting request is approved", arguments: pairs)
  func update(pair: Pair) async throws {
    let earlier = pair.token == .present ? pair.server : pair.token
    let before = Pair(token: earlier, server: earlier)
    try await withPrograms(before, board: QuickBoard.withButton, withPIN: false) { token, server, portal in
      try await token.enroll(try await server.activation())
      let device = try #require(try await portal.devices().first).id
      let port = try #require(Int(portal.base().split(separator: ":").last ?? ""))
      let waiting = try await portal.ask(on: device)
      try await server.stop()

      let updatedServer = VersionedServer(program: pair.server.server, directory: server.directory)
      defer { updatedServer.end() }
      if pair.server == .present { try Self.renameSettings(in: server.directory) }
      try await updatedServer.start(port: port)
      let updatedToken = token.updated(to: pair.token.token)
      defer { updatedToken.end() }
      try await updatedToken.start()
      try await updatedToken.hold()
      #expect(try await portal.finalResult(of: waiting).isAuthenticated)
      #expect(try await updatedToken.provesItsLog())
      try await updatedToken.stop()
    }
  }

  /// What the error messages of the present server say that an operator must do.
  static func renameSettings(in directory: String) throws {
    let file = directory + "/config.toml"
    try String(contentsOfFile: file, encoding: .utf8).replacing("push_enrolment_mode", with: "push_enrollment_mode")
      .replacing("\nenrolment =", with: "\nenrollment =").write(toFile: file, atomically: true, encoding: .utf8)
  }

  /// - Returns: whether it is enrolled; false if one of the programs refused the other with a sentence.
  private func enroll(
    _ token: VersionedToken, _ uri: String, choosing pin: String? = nil
  ) async throws -> Bool {
    do {
      if let pin { try await token.enroll(uri, choosing: pin) } else { try await token.enroll(uri) }
      return true
    } catch {
      guard "\(error)".contains(Self.refusal) else { throw error }
      print("refused: \(error)")
      return false
    }
  }

  private func expect(_ endings: [String: String], of token: VersionedToken) async throws {
    let settled = try await token.audit().filter { $0.kind == "settled" }
    #expect(try await token.provesItsLog())
    for (transaction, ending) in endings {
      let line = settled.last { $0.transaction == transaction }
      #expect(line?.detail.hasPrefix(ending) == true, "\(settled)")
    }
  }

  private func withPrograms(
    _ pair: Pair, board: String, withPIN: Bool,
    _ body: (VersionedToken, VersionedServer, Portal) async throws -> Void
  ) async throws {
    let folder = try TemporaryDirectory()
    defer { folder.remove() }
    let server = VersionedServer(program: pair.server.server, directory: folder.file("server"))
    defer { server.end() }
    let credentials = try await server.initialize(withPIN: withPIN)
    try await server.start()
    let token = VersionedToken(
      program: pair.token.token, state: folder.file("token"), board: try folder.write(board, to: "board.toml"))
    defer { token.end() }
    do { try await body(token, server, server.portal(credentials)) } catch {
      Issue.record(
        "\(pair.testDescription): \(error)\nThe token's log:\n\(token.log)\nThe server's log:\n\(server.log)")
    }
    print("ran: \(pair.testDescription)")
  }
}
