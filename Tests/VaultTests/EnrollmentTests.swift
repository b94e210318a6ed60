// SPDX-License-Identifier: Apache-2.0
import MobileAuth
import Secrets
import Testing
import Vault
import VaultModel

/// A client of a former enrollment reports late that its server removed it.
@Suite("What a server revokes", .timeLimit(.minutes(5))) struct EnrollmentTests {
  private let fixture: VaultFixture
  private let vault: Vault
  private let known: Enrollments

  init() throws {
    fixture = try VaultFixture(in: "/dev/shm")
    vault = try fixture.vault()
    try vault.put(server(acme))
    try vault.put(account(alice))
    known = Enrollments(try #require(try vault.server(acme)), try vault.accounts())
  }

  private static let faults: [TokenServerError] = [.userDeregistered, .disenrolled, .deviceDeregistered]

  private func apply(_ fault: TokenServerError, of enrollments: Enrollments) throws -> EnrollmentRevocation.Outcome {
    try #require(EnrollmentRevocation(fault, at: acme, alice, of: enrollments)).apply(
      on: vault, in: PatientClock(wallClockMilliseconds: 1).environment)
  }

  /// Fails without the comparison of enrollments: the keys of the new enrollment are deleted.
  @Test("Leaves a later enrollment under the same name", arguments: faults)
  func laterEnrollmentStays(fault: TokenServerError) throws {
    if fault == .deviceDeregistered { try vault.put(server(acme, "new device key")) }
    try vault.put(account(alice, "new key"))
    try vault.setPIN(of: alice, to: pin("13579"), keys: secrets("new key"))
    #expect(try apply(fault, of: known) == .enrolledAgain)
    let kept = try fixture.vault().account(alice)
    #expect(kept.stage == .active && SecretBytes.constantTimeEqual(kept.secrets, secrets("new key")))
    guard case .unlocked = try vault.unlock(alice, "13579") else {
      Issue.record("the PIN of the new enrollment is gone")
      return
    }
    #expect(try vault.auditLines(newest: 9).map(\.entry.kind) == [.pinSet])
  }

  @Test("Is deleted if it is the present enrollment, and later no more", arguments: faults)
  func presentEnrollmentIsDeleted(fault: TokenServerError) throws {
    // A new name and other changes are not a new enrollment.
    var changed = try vault.account(alice)
    changed.secrets = secrets("changed")
    try vault.put(changed)
    #expect(try apply(fault, of: known).entry?.kind == (fault == .disenrolled ? .disenrolled : .wiped))
    #expect(try vault.accounts().allSatisfy { $0.stage == .mustEnrollAgain && $0.secrets.count == 0 })
    guard fault != .disenrolled else { return }
    #expect(try apply(fault, of: known) == .alreadyRemoved)
  }

  @Test("Is nothing if the client was not made for the account") func unknownAccount() {
    #expect(EnrollmentRevocation(.userDeregistered, at: acme, bob, of: known) == nil)
  }

  @Test("A former enrollment stays known after its keys were dropped") func droppedKeys() throws {
    #expect(try apply(.disenrolled, of: known).entry != nil)
    #expect(try apply(.userDeregistered, of: known).entry != nil)
    #expect(try vault.accounts().isEmpty)
  }
}
