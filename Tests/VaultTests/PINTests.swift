// SPDX-License-Identifier: Apache-2.0
import Cryptography
import MobileAuth
import PINProtection
import Secrets
import Testing
import VaultModel

@testable import Vault

@Suite("A PIN that the token judges", .timeLimit(.minutes(5))) struct PINTests {
  private let fixture: VaultFixture
  private let vault: Vault
  private let clock = PatientClock(wallClockMilliseconds: 1_760_000_000_123)

  init() throws {
    fixture = try VaultFixture(in: "/dev/shm")
    vault = try fixture.vault()
    try vault.put(server(acme))
    for id in [alice, bob] { try vault.put(account(id)) }
    try vault.setPIN(of: alice, to: pin("13579"), keys: secrets("alice's keys"))
  }

  private var counts: FailureCounts? {
    get throws { try vault.pinStatus(of: alice, in: clock.environment)?.counts }
  }

  @Test("Gives the keys, and forgets what was wrong before") func givesTheKeysAndForgetsWhatWasWrongBefore() throws {
    #expect(try vault.unlock(alice, with: pin("13579"), in: clock.environment).text == "alice's keys")
    try vault.expectWrong(alice)
    #expect(try counts == FailureCounts(max: 3, previous: 1))
    #expect(try vault.unlock(alice, "13579").text == "alice's keys")
    #expect(try counts == FailureCounts(max: 3, previous: 0))
  }

  @Test(
    "Gives nothing for another",
    arguments: ["00000", "13578", "03579", "1357", "135790", "97531", "1", "13579135791357913579135791357913"])
  func givesNothingForAnother(digits: String) throws {
    #expect(try vault.unlock(alice, with: pin(digits), in: clock.environment).text == "wrong 1 of 3, 1 s")
    let line = try vault.auditLines(newest: 1)[0].entry
    #expect(line == entry(.pinWrong, alice, "1 of 3"))
  }

  @Test("Wipes only its account at the attempt limit") func wipesOnlyItsAccountAtTheAttemptLimit() throws {
    try vault.setPIN(of: bob, to: pin("24680"), keys: secrets("bob's keys"))
    try vault.journal(intent(login, alice), entry(.decided))
    #expect(try vault.unlock(alice, "00000").text == "wrong 1 of 3, 1 s")
    #expect(try vault.unlock(alice, "00001").text == "wrong 2 of 3, 3 s")
    #expect(try vault.unlock(alice, "00002").text == "wiped")
    #expect(try vault.accounts().map(\.id) == [bob])
    #expect(try vault.unresolvedIntents() == [])
    #expect(try counts == nil)
    #expect(throws: StateStoreError.notFound(.pin(of: alice))) { try vault.unlock(alice, "13579") }
    #expect(try vault.unlock(bob, "24680").text == "bob's keys")
    #expect(try vault.auditLines(newest: 1)[0].entry == entry(.wiped, alice, "3 wrong PINs"))
    guard case .intact = try vault.verifyAudit() else {
      Issue.record("the chain is broken")
      return
    }
  }

  @Test("That was wrong once with a limit of one is the end") func thatWasWrongOnceWithALimitOfOneIsTheEnd() throws {
    try vault.setPIN(of: alice, to: pin("13579"), keys: secrets("k"), limit: 1)
    #expect(try vault.unlock(alice, with: pin("13579"), in: clock.environment).text == "k")
    #expect(try vault.unlock(alice, with: pin("13570"), in: clock.environment).text == "wiped")
  }

  @Test("Waits longer after every wrong one") func waitsLongerAfterEveryWrongOne() throws {
    try vault.setPIN(of: alice, to: pin("13579"), keys: secrets("k"), limit: 10)
    for (failures, seconds) in [1, 3, 7, 15, 31, 63, 127, 255, 511].enumerated() {
      let verdict = try vault.unlock(alice, with: pin("00000"), in: clock.environment)
      #expect(verdict.text == "wrong \(failures + 1) of 10, \(seconds) s")
      clock.advance(by: .seconds(seconds) - .milliseconds(1))
      guard case .mustWait(.milliseconds(1)) = try vault.unlock(alice, with: pin("13579"), in: clock.environment) else {
        Issue.record("the right PIN did not wait after \(failures + 1)")
        return
      }
      clock.advance(by: .milliseconds(1))
    }
    #expect(try counts == FailureCounts(max: 10, previous: 9))
    #expect(try vault.unlock(alice, with: pin("13579"), in: clock.environment).text == "k")
  }

  @Test("Waits in full again after a restart, a clock that went back, or another process's attempt")
  func waitsInFullAgainAfterARestartAClockThatWentBackOrAnotherProcesssAttempt() throws {
    try vault.expectWrong(alice)
    try vault.expectWrong(alice)
    clock.advance(by: .seconds(1_000_000))
    let restarted = try fixture.vault()
    #expect(try restarted.unlock(alice, with: pin("13579"), in: clock.environment).text == "wait 3 s")
    clock.advance(by: .seconds(3))
    let young = PatientClock(wallClockMilliseconds: 0)
    #expect(try restarted.unlock(alice, with: pin("13579"), in: young.environment).text == "wait 3 s")
    young.advance(by: .seconds(2))
    #expect(try restarted.pinStatus(of: alice, in: young.environment)?.wait == .seconds(1))
    try vault.setPIN(of: alice, to: pin("13579"), keys: secrets("k"), limit: 10)
    for _ in 1...4 { try vault.expectWrong(alice) }
    young.advance(by: .seconds(1_000_000))
    #expect(try restarted.unlock(alice, with: pin("13579"), in: young.environment).text == "wait 15 s")
    young.advance(by: .seconds(15))
    #expect(try restarted.unlock(alice, with: pin("13579"), in: young.environment).text == "k")
  }

  @Test("Is not given back an attempt that was counted while a right one was judged")
  func isNotGivenBackAnAttemptThatWasCountedWhileARightOneWasJudged() throws {
    guard case .right(let counted, _) = try vault.attempt(alice, pin("13579"), clock.environment) else {
      Issue.record("it was right")
      return
    }
    let elsewhere = try fixture.vault()
    try elsewhere.expectWrong(alice)
    try vault.clear(counted)
    #expect(try counts == FailureCounts(max: 3, previous: 2))
    try vault.flush()
    #expect(try fixture.vault().pinStatus(of: alice, in: clock.environment)?.counts.previous == 2)
  }

  @Test(
    "That is right has no count from then on; in storage from the next change on",
    arguments: [
      { try $0.record(entry(.opened, alice)) }, { try $0.flush() },
      { try $0.journal(intent(login, alice), entry(.decided, alice)) }, { try $0.expectWrong(bob) },
    ] as [@Sendable (Vault) throws -> Void])
  func clearsItsCountWithTheNextChange(change: @Sendable (Vault) throws -> Void) throws {
    try vault.setPIN(of: bob, to: pin("24680"), keys: secrets("bob's keys"))
    #expect(try vault.unlock(alice, "13579").text == "alice's keys")
    #expect(try counts == FailureCounts(max: 3, previous: 0))
    let crashed = try fixture.vault()
    #expect(try crashed.pinStatus(of: alice, in: clock.environment)?.counts == FailureCounts(max: 3, previous: 1))
    try change(vault)
    #expect(try crashed.pinStatus(of: alice, in: clock.environment)?.counts == FailureCounts(max: 3, previous: 0))
  }

  /// A limit of three: two crashes cost two attempts, and the third is not lost by a third crash.
  @Test("That is right is accepted whatever the number of crashes after it") func isAcceptedAfterCrashes() throws {
    for attempt in [1, 2, 0, 1, 2, 0, 1] {
      let restarted = try fixture.vault()
      #expect(try restarted.unlock(alice, "13579").text == "alice's keys")
      #expect(try fixture.vault().pinStatus(of: alice, in: clock.environment)?.counts.previous == attempt)
    }
  }

  /// Fails if a change that finds no row to clear stays in the way of others.
  @Test("That is right does not stop an account from being removed") func isClearedInARemovedAccount() throws {
    #expect(try vault.unlock(alice, "13579").text == "alice's keys")
    try fixture.vault().wipe(account: alice, entry(.wiped))
    try vault.record(entry(.opened, bob))
    #expect(vault.queueLength == 0)
    #expect(try counts == nil)
  }

  /// With parameters that scrypt refuses, nothing can be derived, but the attempt is counted.
  @Test("Is counted before anything is derived from it") func isCountedBeforeAnythingIsDerivedFromIt() throws {
    let sealed = try SealedKeys(encoded: SecretBytes(copying: [1, 1, 0, 1] + [UInt8](repeating: 0, count: 80)))
    try vault.transaction { [vault] connection in
      let ciphertext = try PINRecord.sealedBytes(of: sealed, for: alice, vault.keys)
      try PINRecord(account: alice, limit: 3, failures: 0, sealedBytes: ciphertext).write(to: connection, vault.keys)
    }
    #expect(throws: StateStoreError.self) { try vault.unlock(alice, with: pin("13579"), in: clock.environment) }
    #expect(try counts == FailureCounts(max: 3, previous: 1))
  }

  @Test("Is changed by a user who knows it") func isChangedByAUserWhoKnowsIt() throws {
    let tries: [(String, String, String)] = [
      ("00000", "24680", "wrong 1 of 3, 1 s"), ("13579", "24680", "alice's keys"),
      ("13579", "24680", "wrong 1 of 3, 1 s"),
      ("24680", "24680", "alice's keys"), ("00000", "1", "wrong 1 of 3, 1 s"), ("00000", "1", "wrong 2 of 3, 3 s"),
      ("00000", "1", "wiped"),
    ]
    for (old, new, verdict) in tries {
      let found = try clock.waitOut { environment throws(StateStoreError) in
        try vault.changePIN(of: alice, from: pin(old), to: pin(new), parameters: cheap, in: environment)
      }
      #expect(found.text == verdict, "from \(old) to \(new)")
    }
    let kinds = try vault.auditLines(newest: 8).map(\.entry.kind)
    #expect(kinds == [.pinSet, .pinWrong, .pinChanged, .pinWrong, .pinChanged, .pinWrong, .pinWrong, .wiped])
  }

  /// Fails if a change that fails after the right PIN leaves the last attempt counted: the next one would wipe the
  /// keys.
  @Test("Is not lost if its change fails", arguments: [1, 3]) func changeThatFails(limit: Int) throws {
    try vault.setPIN(of: alice, to: pin("13579"), keys: secrets("alice's keys"), limit: limit)
    let refused = Scrypt.Parameters(cost: 3, blockSize: 1, parallelization: 1)
    for _ in 1...4 {
      #expect(throws: StateStoreError.self) {
        try vault.changePIN(
          of: alice, from: pin("13579"), to: pin("24680"), parameters: refused, in: clock.environment)
      }
      #expect(try counts == FailureCounts(max: limit, previous: 0))
    }
    #expect(try fixture.vault().unlock(alice, "13579").text == "alice's keys")
  }

  @Test("Goes with the keys when they are dropped") func goesWithTheKeysWhenTheyAreDropped() throws {
    try vault.dropKeys(of: alice, entry(.disenrolled))
    #expect(throws: StateStoreError.notFound(.pin(of: alice))) { try vault.unlock(alice, "13579") }
    #expect(throws: StateStoreError.notFound(.pin(of: bob))) { try vault.unlock(bob, "13579") }
    #expect(throws: StateStoreError.notFound(.account(AccountID("carol")))) {
      try vault.setPIN(of: AccountID("carol"), to: pin("13579"), keys: secrets("k"))
    }
  }

  @Test("Opens on its own device only") func opensOnItsOwnDeviceOnly() throws {
    let other = try VaultFixture(in: "/dev/shm")
    let stranger = try other.vault()
    #expect(!SecretBytes.constantTimeEqual(stranger.pinBinding, vault.pinBinding))
    #expect(SecretBytes.constantTimeEqual(try fixture.vault().pinBinding, vault.pinBinding))
  }
}
