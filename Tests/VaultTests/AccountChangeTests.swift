// SPDX-License-Identifier: Apache-2.0
import MobileAuth
import Secrets
import Testing
import Vault

@Suite("A change of an account that was read", .timeLimit(.minutes(5))) struct AccountChangeTests {
  private let fixture: VaultFixture
  private let vault: Vault

  init() throws {
    fixture = try VaultFixture(in: "/dev/shm")
    vault = try fixture.vault()
    try vault.put(server(acme))
    try vault.put(account(alice))
  }

  private static let changes: [AccountChange] = [
    .put(account(alice, "new key"), entry(.enrolled, alice)), .dropKeys(entry(.disenrolled, alice)),
    .wipe(entry(.removed, alice)),
  ]

  @Test("Happens while it is as it was") func happensWhileItIsAsItWas() throws {
    let known = try vault.account(alice)
    #expect(try vault.change(known, .put(account(alice, "new key"), entry(.enrolled, alice))))
    let kept = try vault.account(alice)
    #expect(SecretBytes.constantTimeEqual(kept.secrets, secrets("new key")))
    #expect(try vault.change(kept, .dropKeys(entry(.disenrolled, alice))))
    let emptied = try vault.account(alice)
    #expect(emptied.stage == .mustEnrollAgain && emptied.secrets.count == 0)
    #expect(try vault.change(emptied, .wipe(entry(.removed, alice))))
    #expect(try vault.accounts().isEmpty)
    #expect(try vault.auditLines(newest: 9).map(\.entry.kind) == [.enrolled, .disenrolled, .removed])
  }

  @Test("Does not happen to another one", arguments: [0, 1, 2]) func doesNotHappenToAnotherOne(index: Int) throws {
    let known = try vault.account(alice)
    var others = [known, known, known]
    others[0].stage = .enrolling
    others[1].profile = "another"
    others[2].secrets = secrets("another key")
    for other in others {
      try vault.put(other)
      #expect(try !vault.change(known, Self.changes[index]))
      #expect(try vault.account(alice).isSame(as: other))
    }
    try vault.wipe(account: alice, entry(.wiped, alice))
    #expect(try !vault.change(known, Self.changes[index]))
    #expect(try vault.accounts().isEmpty)
    #expect(try vault.auditLines(newest: 9).map(\.entry.kind) == [.wiped])
  }

  /// A second process has the vault open, too.
  @Test("Is repeated after a concurrent change") func isRepeatedAfterAConcurrentChange() throws {
    let other = try fixture.vault()
    var tries = 0
    let kept = try vault.update(alice) { known throws(StateStoreError) in
      tries += 1
      if tries == 1 { try other.put(account(alice, stage: .enrolling), nil) }
      var changed = known
      changed.secrets = secrets("new key")
      return changed
    }
    #expect(tries == 2 && kept?.stage == .enrolling)
    #expect(try vault.account(alice).stage == .enrolling)
    #expect(SecretBytes.constantTimeEqual(try vault.account(alice).secrets, secrets("new key")))
    let nobody = try vault.update(AccountID("nobody")) { $0 }
    #expect(nobody?.id == nil)
  }
}
