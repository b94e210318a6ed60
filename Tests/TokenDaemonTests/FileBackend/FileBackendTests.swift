// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import ControlProtocol
import FrontPanel
import MobileAuth
import ServerBackends
import Testing
import Vault

@testable import TokenDaemon

/// Shows that a kind of server needs no change outside of its own files and one line in the list of kinds.
@Suite(.timeLimit(.minutes(5))) struct FileBackendTests {
  private static let kinds = Backends.kinds + [FileBackend.self]
  private static let request = FileServer.Contents.Request(
    id: "11111111-1111-4111-8111-111111111111", message: "Pay 5 EUR?")

  @Test("A new kind of server enrolls, shows, answers and is removed through the same service")
  func newKindOfServer() async throws {
    let fixture = try ServiceFixture(reportHold: .seconds(6), kinds: Self.kinds)
    let server = FileServer(path: fixture.serverFile)
    let running = [Task { await fixture.board.panel.run() }, Task { _ = try? await fixture.service.run() }]

    var options = EnrollmentOptions(uri: "file-token:\(server.path)#ann")
    options.name = "mail"
    #expect(try await fixture.answer(.enroll(options), as: EnrollmentResponse.self).account == "mail")
    #expect(try server.read().pending == ["ann": []])

    try server.change { $0.pending["ann"]?.append(Self.request) }
    let shown = try await fixture.shownRequest()
    #expect(shown.message == "Pay 5 EUR?" && shown.account == "mail" && shown.server == "file")
    let hold = ControlRequest.simulate(.hold(milliseconds: 1000))
    #expect(try await fixture.answer(hold, as: Done.self).ignored == nil)
    try await fixture.until("the answer") { try server.read().answers == [Self.request.id: "approved"] }
    try await fixture.until(.idle(pending: 0))

    async let removal = fixture.answer(.forget(account: "mail"), as: RemovalResponse.self)
    try await fixture.until("a press counts") { await fixture.board.panel.readiness == .counts }
    #expect(try await fixture.answer(.simulate(.notMe), as: Done.self).ignored == nil)
    #expect(try await removal.serverNotified)
    #expect(try server.read().pending.isEmpty && fixture.vault.accounts().isEmpty)
    for task in running { task.cancel() }
    for task in running { try await task.finished() }
  }

  @Test("The URI of a kind that is not in the list is refused") func unknownKind() async throws {
    let fixture = try ServiceFixture()
    await #expect {
      try await fixture.handler.answer(.enroll(EnrollmentOptions(uri: "file-token:/tmp/x#ann"))) { _ in }
    } throws: {
      ($0 as? CommandError)?.code == .badData && "\($0)".hasPrefix("not an enrollment URI")
    }
  }

  /// A lock must not disappear with the record of the account's server.
  @Test("An account whose server is of an unknown kind is not usable") func unknownKindIsNotUnlocked() async throws {
    let fixture = try ServiceFixture(kinds: Self.kinds)
    let server = FileServer(path: fixture.serverFile)
    let options = EnrollmentOptions(uri: "file-token:\(server.path)#ann")
    _ = try await fixture.answer(.enroll(options), as: EnrollmentResponse.self)
    let account = try fixture.vault.account(AccountID("ann"))
    try Backends(fixture.vault, fixture.context, kinds: Self.kinds).operations.requireUnlocked(account)
    #expect(throws: StateStoreError.corrupt(.kind("file", TokenServerID("file")))) {
      try Backends(fixture.vault, fixture.context).operations.requireUnlocked(account)
    }
  }
}
