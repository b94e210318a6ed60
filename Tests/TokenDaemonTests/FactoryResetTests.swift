// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import ControlProtocol
import FrontPanel
import MobileAuth
import Testing
import Vault

@testable import TokenDaemon

@Suite(.timeLimit(.minutes(5))) struct FactoryResetTests {
  private static let kinds = Backends.kinds + [FileBackend.self]

  private func enrolled(_ fixture: ServiceFixture) async throws {
    try await fixture.enroll("codes")
    for user in ["ann", "ben"] {
      let options = EnrollmentOptions(uri: "file-token:\(fixture.serverFile)#\(user)")
      _ = try await fixture.answer(.enroll(options), as: EnrollmentResponse.self)
    }
  }

  private func withRunning(_ fixture: ServiceFixture, _ body: () async throws -> Void) async throws {
    let running = [Task { await fixture.board.panel.run() }, Task { _ = try? await fixture.service.run() }]
    try await enrolled(fixture)
    let ben = try fixture.vault.account(AccountID("ben"))
    try await fixture.until("both accounts") {
      (fixture.service.server(of: ben) as? FileServerClient)?.accounts.count == 2
    }
    try await body()
    for task in running { task.cancel() }
    for task in running { try await task.finished() }
  }

  @Test("A very long hold notifies the token servers, removes the accounts and ends the service")
  func resets() async throws {
    let fixture = try ServiceFixture(reportHold: .seconds(6), kinds: Self.kinds)
    let server = FileServer(path: fixture.serverFile)
    try await withRunning(fixture) {
      #expect(try server.read().pending.count == 2)
      let reset = Task { try await fixture.answer(.factoryReset, as: FactoryResetResponse.self) }
      try await fixture.until("a press counts") { await fixture.board.panel.readiness == .counts }
      #expect(try await fixture.answer(.simulate(.notMe), as: Done.self).ignored == nil)
      let response = try await reset.finished()
      #expect(response.removed.count == 3 && response.notNotified.isEmpty)
      #expect(try server.read().pending.isEmpty && fixture.vault.accounts().isEmpty)
      #expect(try FactoryReset(directory: fixture.path).hasBegun && fixture.hasEnded)
    }
  }

  @Test("Without the server's confirmation the reset goes on, and names the accounts") func unreachable() async throws {
    let fixture = try ServiceFixture(reportHold: .seconds(6), kinds: Self.kinds)
    try await withRunning(fixture) {
      try FileServer(path: fixture.serverFile).damage()
      let reset = Task { try await fixture.answer(.factoryReset, as: FactoryResetResponse.self) }
      try await fixture.until("a press counts") { await fixture.board.panel.readiness == .counts }
      _ = try await fixture.answer(.simulate(.notMe), as: Done.self)
      #expect(try await reset.finished().notNotified == ["ann", "ben"])
      #expect(try fixture.vault.accounts().isEmpty && fixture.hasEnded)
    }
  }

  @Test("A change of the accounts does not interrupt it") func reload() async throws {
    let fixture = try ServiceFixture(reportHold: .seconds(6), kinds: Self.kinds)
    try await withRunning(fixture) {
      let reset = Task { try await fixture.answer(.factoryReset, as: FactoryResetResponse.self) }
      try await fixture.until("a press counts") { await fixture.board.panel.readiness == .counts }
      fixture.service.reload()
      _ = try await fixture.answer(.simulate(.notMe), as: Done.self)
      #expect(try await reset.finished().removed.count == 3)
    }
  }

  @Test("A double press ends it, and nothing is changed") func canceled() async throws {
    let fixture = try ServiceFixture(reportHold: .seconds(6), kinds: Self.kinds)
    try await withRunning(fixture) {
      let reset = Task { try await fixture.answer(.factoryReset, as: FactoryResetResponse.self) }
      try await fixture.until("a press counts") { await fixture.board.panel.readiness == .counts }
      _ = try await fixture.answer(.simulate(.doublePress), as: Done.self)
      await #expect(throws: PanelDialog.EntryError.canceled) { try await reset.finished() }
      #expect(try fixture.vault.accounts().count == 3 && !fixture.hasEnded)
      #expect(try !FactoryReset(directory: fixture.path).hasBegun)
    }
  }
}
