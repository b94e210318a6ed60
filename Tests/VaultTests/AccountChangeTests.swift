// SPDX-License-Identifier: Apache-2.0
import MobileAuth
import Secrets
import Testing
import Vault

@Suite(.timeLimit(.minutes(5))) struct `A change of an account that was read` {
  private let playground: Playground
  private let vault: Vault

  init() throws {
    playground = try Playground(in: "/dev/shm")
    vault = try playground.vault()
    try vault.put(server(acme))
    try vault.put(account(alice))
  }

  private static let changes: [AccountChange] = [
    .put(account(alice, "new key"), entry(.enrolled, alice)), .dropKeys(entry(.disenrolled, alice)),
    .wipe(entry(.removed, alice)),
  ]

  @Test func `Happens while it is as it was`() throws {
    let known = try vault.account(alice)
    #expect(try vault.change(known, .put(account(alice, "new key"), entry(.enrolled, alice))))
    let kept = try vault.account(alice)
    #expect(SecretBytes.constantTimeEqual(kept.secrets, secrets("new key")))
    #expect(try vault.change(kept, .dropKeys(entry(.disenrolled, alice))))
    let emptied = try vault.account(alice)
    #expect(emptied.stage == .mustEnrolAgain && emptied.secrets.count == 0)
    #expect(try vault.change(emptied, .wipe(entry(.removed, alice))))
    #expect(try vault.accounts().isEmpty)
    #expect(try vault.auditLines(newest: 9).map(\.entry.kind) == [.enrolled, .disenrolled, .removed])
  }

  @Test(arguments: [0, 1, 2]) func `Does not happen to another one`(index: Int) throws {
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
  @Test func `Is repeated after a concurrent change`() throws {
    let other = try playground.vault()
    var tries = 0
    let kept = try vault.update(alice) { known throws(CustodyFault) in
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
