// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import Foundation
import ProgramHarness
import Testing

/// The present programs open the state of earlier versions, and go on where those stopped.
@Suite(.timeLimit(.minutes(5))) struct EarlierStates {
  private struct Listed: Decodable {
    let account: String
    let stage: String
    let locked: String?
  }

  fileprivate static func withState(of commit: String, _ body: (EarlierState) async throws -> Void) async throws {
    let state = try await EarlierState(of: commit)
    defer { state.folder.remove() }
    try await body(state)
  }

  @Test("There is state of the first version") func thereIsState() { #expect(EarlierState.commits.contains("e419458")) }

  @Test("All accounts of a vault are listed with their stages and locks", arguments: EarlierState.commits)
  func accounts(commit: String) async throws {
    try await Self.withState(of: commit) { state in
      let listed = try await state.token.command("accounts", "--json").succeeded().decoded([Listed].self)
      #expect(
        listed.map(\.account).sorted()
          == ["alice", "ann", "bob", "cleo", "counter", "dan", "locked", "time", "typed"])
      #expect(listed.allSatisfy { $0.stage == "active" })
      #expect(listed.filter { $0.locked != nil }.map(\.account).sorted() == ["cleo", "locked"])
      #expect(try await state.token.provesItsLog())
    }
  }

  @Test("The audit chain of a vault verifies and is continued", arguments: EarlierState.commits)
  func auditChain(commit: String) async throws {
    try await Self.withState(of: commit) { state in
      let token = state.token
      let before = try await token.audit()
      let settled = before.filter { $0.kind == "settled" }.compactMap(\.transaction)
      #expect(Set(settled) == Set(state.metadata.transactions.filter { $0.value != "open" }.keys))
      try await token.command("unlock", "cleo").succeeded()
      let after = try await token.audit()
      #expect(after.count == before.count + 1 && after.last?.kind == "unlocked")
      #expect(try await token.provesItsLog())
    }
  }

  @Test("Counters of one-time passwords continue, locks hold until they are removed", arguments: EarlierState.commits)
  func oneTimePasswords(commit: String) async throws {
    try await Self.withState(of: commit) { state in
      let token = state.token
      func code(_ account: String) async throws -> String { try await token.command("otp", account).output }
      #expect(try await code("counter") == EarlierState.codes[2])
      #expect(try await token.command("otp", "locked").exit == .code(77))
      try await token.command("unlock", "locked").succeeded()
      #expect(try await code("locked") == EarlierState.codes[0])
      #expect(try await code("ann") == EarlierState.codes[0])
      #expect(try await code("time").count == 8)
    }
  }

  @Test("Push tokens of privacyIDEA are listed, and the PIN of one can be changed", arguments: EarlierState.commits)
  func pushTokens(commit: String) async throws {
    let folder = try await EarlierState.unpack(commit + "-push")
    defer { folder.remove() }
    let token = VersionedToken(
      program: Program.token, state: folder.file("token"), board: folder.file("board.toml"))
    defer { token.end() }
    #expect(
      try await token.accounts().sorted { $0.account < $1.account }
        == [.init(account: "desk", stage: "active"), .init(account: "typed", stage: "active")])
    #expect(try await token.audit().contains { $0.kind == "settled" && $0.detail.hasPrefix("approved") })
    try await token.start()
    let change = try token.begin(["pin", "change", "typed"])
    try await token.type(EarlierState.typedPIN)
    try await token.choose("975312")
    try await change.outcome().succeeded()
    try await token.stop()
    #expect(try await token.provesItsLog())
  }

  @Test("A server lists its transactions, devices and portals", arguments: EarlierState.commits)
  func serverLists(commit: String) async throws {
    try await Self.withState(of: commit) { state in
      let server = state.server
      try CompatibilityMatrix.renameSettings(in: server.directory)
      let found = try await server.transactions().map { ($0.transactionId, $0.state) }
      #expect(Dictionary(uniqueKeysWithValues: found) == state.metadata.transactions)
      let users = try await server.devices().flatMap(\.users)
      #expect(users.map(\.user).sorted() == ["alice", "bob"] && users.allSatisfy { $0.pin == "active" && $0.push })
      #expect(users.first { $0.user == "bob" }?.pinFailures == 1)
      struct Portal: Decodable { let clientId: String }
      let portals = try await server.command(["api-client", "list"]).decoded([Portal].self)
      #expect(portals.map(\.clientId).sorted() == ["portal", "reader"])
    }
  }

  @Test("A configuration with former names is an error that has the new names")
  func formerSettings() async throws {
    try await Self.withState(of: "e419458") { state in
      let former = [("enrolment", "enrollment"), ("push_enrolment_mode", "push_enrollment_mode")]
      for (name, newName) in former {
        let refused = try await run(
          Program.server, ["serve", "--directory", state.server.directory, "--port", "0"])
        #expect(refused.exit == .code(1) && refused.output.isEmpty)
        let text = "\"mobile_authentication.\(name)\" is now called \"mobile_authentication.\(newName)\""
        #expect(refused.errors.contains(text), "\(refused)")
        let file = state.server.directory + "/config.toml"
        try await run("sed", ["-i", "s/^\(name) *=/\(newName) =/", file]).succeeded()
      }
      let board = try state.folder.write(
        QuickBoard.withButton.replacing("[gestures]", with: "[led]\ncolours = \"mono\"\n[gestures]"), to: "led.toml")
      let token = try await run(Program.token, ["serve", "--board", board, "--state", state.folder.file("new")])
      #expect(
        token.exit != .code(0) && token.errors.contains("\"led.colours\" is now called \"led.colors\""), "\(token)")
    }
  }
}

extension EarlierStates {
  /// One after the other: the tokens know the same server at the same address, and each would otherwise show the
  /// requests of the other test.
  @Suite(.serialized) struct ByTheService {
    @Test("A PIN that the token verifies is accepted and a wrong one rejected", arguments: EarlierState.commits)
    func tokenPIN(commit: String) async throws {
      try await EarlierStates.withState(of: commit) { state in
        let token = state.token
        defer { token.end() }
        try await token.start()
        let code = try token.begin(["otp", "typed"])
        try await token.type(EarlierState.wrongPIN + "0")
        try await token.type(EarlierState.typedPIN)
        #expect(try await code.outcome().succeeded().output == EarlierState.codes[0])
        let change = try token.begin(["pin", "change", "dan"])
        try await token.type(EarlierState.typedPIN)
        try await token.choose("975312")
        try await change.outcome().succeeded()
        try await token.stop()
        #expect(try await token.provesItsLog())
      }
    }

    @Test("A request that an earlier server sent is approved, then one with the PIN", arguments: EarlierState.commits)
    func approval(commit: String) async throws {
      try await EarlierStates.withState(of: commit) { state in
        let (server, token) = (state.server, state.token)
        defer {
          token.end()
          server.end()
        }
        try CompatibilityMatrix.renameSettings(in: server.directory)
        try await start(server)
        try await token.start()
        let portal = server.portal(state.metadata.credentials)
        let open = try #require(state.metadata.transactions.first { $0.value == "open" }).key
        try await token.hold()
        #expect(try await portal.finalResult(of: open).isAuthenticated)
        try await token.shows("idle, connected")

        let device = try #require(try await portal.devices().first).id
        for (user, pin) in EarlierState.pins {
          let payment = try await portal.ask(user, on: device, type: "payment")
          try await token.type(pin)
          #expect(try await portal.finalResult(of: payment).isAuthenticated)
          try await token.shows("idle, connected")
        }
        #expect(try await server.devices().flatMap(\.users).allSatisfy { $0.pinFailures == 0 })
        #expect(try await token.provesItsLog())
      }
    }

    /// Waits for the port: another run of this test on this machine may use it.
    private func start(_ server: VersionedServer) async throws {
      _ = try await eventually("port \(EarlierState.port)") { () -> Bool? in
        do { try await server.start(port: nil) } catch {
          guard server.log.contains("in use") else { throw error }
          return nil
        }
        return true
      }
    }
  }
}
