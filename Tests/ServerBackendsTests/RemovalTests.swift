// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import MobileAuth
import Secrets
import ServerBackends
import Testing

@Suite("Removal of accounts", .timeLimit(.minutes(1))) struct RemovalTests {
  private let fixture: OperationsFixture

  init() throws { fixture = try OperationsFixture() }

  /// Removes the account "ann".
  private func remove(through client: (any TokenServerClient)?) async throws -> RemovalNotification {
    let account = try fixture.account("ann")
    return try await fixture.operations.remove(account, through: client) { String("\($0)".prefix(while: \.isLetter)) }
  }

  private func isRemoved(noting detail: String) throws -> Bool {
    try fixture.store.accounts().isEmpty && fixture.store.details(of: .removed) == [detail]
  }

  @Test("An account is removed at its server, and then here") func confirmed() async throws {
    let server = DeregisteringClient()
    guard case .confirmed = try await remove(through: server) else {
      Issue.record("the server confirmed the removal")
      return
    }
    #expect(server.deregistered == [AccountID("ann")])
    #expect(try isRemoved(noting: "confirmed"))
  }

  /// Fails if an operation reports that the server still lists an account which the server has removed before.
  @Test(
    "A server that has removed the account before confirms the removal",
    arguments: [
      TokenServerError.deviceDeregistered, .userDeregistered, .unconfirmedRemoval(number: 9002),
      .unconfirmedRemoval(number: 9003),
    ])
  func removedBefore(fault: TokenServerError) async throws {
    guard case .confirmed = try await remove(through: DeregisteringClient(fault: fault)) else {
      Issue.record("the account is no longer at the server")
      return
    }
    #expect(try isRemoved(noting: "confirmed"))
  }

  @Test("An account is removed here even if its server cannot be notified") func failed() async throws {
    guard case .failed(let error) = try await remove(through: DeregisteringClient(fault: .unreachable("down"))) else {
      Issue.record("the server was not reachable")
      return
    }
    #expect(error as? TokenServerError == .unreachable("down"))
    #expect(try isRemoved(noting: "failed"))
  }

  @Test("An account is removed here if a token cannot remove it at its server") func unsupported() async throws {
    guard case .unsupported(let server) = try await remove(through: ScriptedServerClient()) else {
      Issue.record("the client cannot deregister")
      return
    }
    #expect(server.id == OperationsFixture.able)
    #expect(try isRemoved(noting: "unsupported"))
  }

  @Test("An account without a server is removed here") func withoutServer() async throws {
    guard case .withoutServer = try await remove(through: nil) else {
      Issue.record("accounts of this kind have no server")
      return
    }
    #expect(try isRemoved(noting: "withoutServer"))
  }

  // MARK: Disenrollment

  private struct Client: Disenrollment, ScriptedForwarding {
    let scripted = ScriptedServerClient()
    var fault: TokenServerError?

    func disenroll(_ account: AccountID, pushOnly: Bool) async throws(TokenServerError) { if let fault { throw fault } }
    func remainder(of account: AccountID) -> SecretBytes? { SecretBytes(copying: [7]) }
  }

  @Test("Disenrollment keeps the account with what stays of it", arguments: [true, false])
  func disenrollment(pushOnly: Bool) async throws {
    let account = try fixture.account("ann")
    try await fixture.operations.disenroll(account, through: Client(), pushOnly: pushOnly)
    let kept = try fixture.store.account(account.id)
    #expect(kept.stage == .mustEnrollAgain && SecretBytes.constantTimeEqual(kept.secrets, SecretBytes(copying: [7])))
    #expect(fixture.store.details(of: .disenrolled) == [pushOnly ? "push alone, by a command" : "by a command"])
  }

  @Test("Disenrollment without the server changes nothing") func disenrollmentFails() async throws {
    let account = try fixture.account("ann")
    await #expect(throws: TokenServerError.unreachable("down")) {
      try await fixture.operations.disenroll(account, through: Client(fault: .unreachable("down")), pushOnly: false)
    }
    await #expect(throws: AccountError.withoutLayers(account.id)) {
      try await fixture.operations.disenroll(account, through: ScriptedServerClient(), pushOnly: false)
    }
    #expect(try fixture.store.account(account.id).stage == .active)
  }

  @Test("An account is removed here even if the record of its server is missing") func missingServer() async throws {
    let account = try fixture.account("ann", at: TokenServerID("missing.example"))
    let notification = try await fixture.operations.remove(account) { _ in "x" }
    guard case .failed(let error) = notification else {
      Issue.record("there is no server to notify")
      return
    }
    #expect(error as? StateStoreError == .corrupt(.serverOf(account.id, account.server)))
    #expect(try isRemoved(noting: "x"))
  }
}
