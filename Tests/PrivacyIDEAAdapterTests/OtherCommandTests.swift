// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import Cryptography
import HTTP
import MobileAuth
import ServerBackends
import Testing

@testable import PrivacyIDEAAdapter

/// What other commands, also of other processes, do with an account between a read and a write of an enrollment.
@Suite("Commands that run meanwhile", .timeLimit(.minutes(5))) struct OtherCommandTests {
  enum Command: CaseIterable {
    case choosePIN, lock, rename, remove

    /// Runs the command for the account PIPU1.
    func run(on registry: MemoryRegistry) {
      guard var account = try? registry.accounts().first else { return }
      switch self {
      case .choosePIN: account.pin = PINMetadata(.token, length: 6)
      case .lock: account.lock = UserLock(policy: nil)
      case .rename: account.id = AccountID("desk")
      case .remove: break
      }
      try? registry.wipe(account: AccountID("PIPU1"), AuditEntry(.removed, wallClockMilliseconds: 0))
      if self != .remove { try? registry.put(account, nil) }
    }
  }

  private let fixture = EnrollmentFixture()

  /// Fails if a lost PIN lets requests be approved without it, or if a removed account is there again.
  /// - Parameter step: the step before whose write the command runs.
  @Test("An enrollment undoes nothing", arguments: ["generating a key", "enrolling PIPU1"], Command.allCases)
  func enrollment(step: String, command: Command) async throws {
    _ = try await fixture.enrollment().enroll(fixture.server.prepare("PIPU1"), name: nil, trust: ServerTrust())
    var again = PushEnrollment(
      registry: fixture.registry, in: fixture.environment, settings: fixture.settings, pinPrompter: nil,
      progress: { [registry = fixture.registry] line in
        if line.hasPrefix(step) { registry.afterNextRead { command.run(on: registry) } }
      },
      makeHTTPTransport: { [fixture] _ in fixture.http })
    again.makeRSAKey = { _ in PrivacyIDEAFixture.deviceKeys[0] }
    let name = command == .rename ? "desk" : "PIPU1"
    do {
      _ = try await again.enroll(fixture.server.prepare("PIPU1"), name: nil, trust: ServerTrust())
      #expect(try await fixture.isUsable(name))
    } catch let fault as StateStoreError {
      #expect(command == .remove && fault == .notFound(.account(AccountID("PIPU1"))))
    }
    let accounts = try fixture.registry.accounts()
    #expect(accounts.map(\.id.text) == (command == .remove ? [] : [name]))
    #expect(accounts.allSatisfy { ($0.pin?.length == 6) == (command == .choosePIN) })
    #expect(accounts.allSatisfy { ($0.lock != nil) == (command == .lock) })
    let wantsPIN = try fixture.credentials(name)?.active?.wantsPIN
    #expect(wantsPIN == (command == .remove ? nil : command == .choosePIN))
  }
}
