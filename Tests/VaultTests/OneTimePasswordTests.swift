// SPDX-License-Identifier: Apache-2.0
import Cryptography
import Glibc
import MobileAuth
import PINProtection
import SQLite
import Secrets
import Testing
import Vault
import VaultModel

@Suite("One-time passwords in the vault", .timeLimit(.minutes(5))) struct OneTimePasswordTests {
  private let fixture: VaultFixture
  private let vault: Vault
  private let counting = OneTimePasswordSetup(algorithm: .sha1, digits: 6, factor: .counter(0))
  private let ticking = OneTimePasswordSetup(algorithm: .sha256, digits: 6, factor: .period(30))
  private let secret = secretBytes(base32: "IBAUEQ2EIVDEOSCJJJFUYTKOJ5IFCUST")

  init() throws {
    fixture = try VaultFixture(in: "/dev/shm")
    vault = try fixture.vault()
    try vault.store(counting, secret: secret, of: account(alice), at: server(acme), entry(.enrolled, alice))
  }

  private let carol = AccountID("carol")

  private func clock(_ seconds: Int64 = 1_790_000_123) -> PatientClock {
    PatientClock(wallClockMilliseconds: seconds * 1000)
  }

  private func codes(_ count: Int, of account: AccountID = alice, in vault: Vault) throws -> [String] {
    try (0..<count).compactMap { _ in try vault.next(of: account, clock: clock()).digits }
  }

  @Test("A counter moves on with every code, across processes and starts")
  func counterMovesOnWithEveryCodeAcrossProcessesAndStarts() throws {
    #expect(try codes(2, in: vault) == ["467851", "443220"])
    #expect(try codes(2, in: fixture.vault()) == ["307694", "553707"])
    #expect(try codes(1, in: vault) == ["597237"])
    #expect(try vault.oneTimePasswords()[alice]?.setup.factor == .counter(5))
    let shown = try vault.auditLines(newest: 10).map(\.entry).filter { $0.kind == .codeShown }.map(\.detail)
    #expect(shown == (0..<5).map { "number \($0)" })
  }

  @Test("Time gives a code and how long it is good") func timeGivesACodeAndHowLongItIsGood() throws {
    try vault.store(ticking, secret: secret, of: account(bob), at: server(acme), entry(.enrolled, bob))
    for seconds in [1_790_000_100, 1_790_000_123, 1_790_000_129] as [Int64] {
      guard case .code(let code) = try vault.next(of: bob, clock: clock(seconds)) else {
        Issue.record("there is a code at \(seconds)")
        return
      }
      #expect(code.digits == "819780" && code.factor == 59_666_670)
      #expect(code.validity == 1_790_000_100..<1_790_000_130)
    }
    let next = try vault.next(of: bob, clock: clock(1_790_000_130))
    #expect(next.digits != nil && next.digits != "819780")
  }

  @Test("A clock that is known to be behind makes no code of time") func clockThatIsKnownToBeBehindMakesNoCodeOfTime()
    throws
  {
    try vault.store(ticking, secret: secret, of: account(bob), at: server(acme), entry(.enrolled, bob))
    // The time reported by a token server, which may be malicious, does not block codes for other services.
    try vault.note(time: 253_402_300_799, of: acme)
    #expect(try vault.next(of: bob, clock: clock(1_790_000_000)).digits != nil)
    // A counter-based code needs no clock.
    #expect(try vault.next(of: alice, clock: clock(0)).digits == "467851")
    let release: Int64 = 1_790_000_300
    #expect(try vault.next(of: bob, clock: clock(release - 1), notBefore: release) == .clockBehind)
    #expect(try vault.next(of: bob, clock: clock(release), notBefore: release).digits != nil)
  }

  @Test("An account that is not active shows none") func accountThatIsNotActiveShowsNone() throws {
    for stage in [EnrollmentStage.enrolling, .mustEnrollAgain] {
      try vault.put(account(alice, stage: stage))
      #expect(try vault.next(of: alice, clock: clock()) == .locked)
    }
    #expect(try vault.oneTimePasswords()[alice]?.setup == counting)
  }

  @Test("What MD5 has no code for is passed over") func whatMD5HasNoCodeForIsPassedOver() throws {
    let setup = OneTimePasswordSetup(algorithm: .md5, digits: 6, factor: .counter(1))
    try vault.store(setup, secret: secret, of: account(bob), at: server(acme), entry(.enrolled, bob))
    #expect(try vault.next(of: bob, clock: clock()) == .noCode)
    #expect(try codes(2, of: bob, in: vault) == ["355679", "600421"])
  }

  @Test("The last counter is not followed by the first") func lastCounterIsNotFollowedByTheFirst() throws {
    let setup = OneTimePasswordSetup(algorithm: .sha1, digits: 6, factor: .counter(.max - 1))
    try vault.store(setup, secret: secret, of: account(bob), at: server(acme), entry(.enrolled, bob))
    #expect(try vault.next(of: bob, clock: clock()).digits != nil)
    for _ in 1...2 { #expect(try vault.next(of: bob, clock: clock()) == .usedUp) }
  }

  @Test("Enrolling again does not set a counter back") func enrollingAgainDoesNotSetACounterBack() throws {
    _ = try codes(3, in: vault)
    #expect(throws: StateStoreError.self) {
      try vault.store(counting, secret: secret, of: account(alice), at: server(acme), entry(.enrolled, alice))
    }
    #expect(try vault.oneTimePasswords()[alice]?.setup.factor == .counter(3))
    // The credential of an account that is not enrolled yet was never used.
    for setup in [counting, ticking] {
      try vault.store(setup, secret: secret, of: account(carol, stage: .enrolling), at: server(acme), nil)
      #expect(try vault.oneTimePasswords()[carol]?.setup == setup)
    }
    #expect(throws: StateStoreError.notFound(.oneTimePasswords(of: bob))) {
      try vault.next(of: bob, clock: clock())
    }
  }

  @Test(
    "Changes in storage are detected",
    arguments: [
      "UPDATE one_time_passwords SET counter = 0", "UPDATE one_time_passwords SET period = 30",
      "UPDATE one_time_passwords SET algorithm = 'md5'", "UPDATE one_time_passwords SET digits = 8",
      "UPDATE one_time_passwords SET box = x''",
      "UPDATE one_time_passwords SET algorithm = 'rot13'", "UPDATE one_time_passwords SET mark = zeroblob(32)",
      "UPDATE one_time_passwords SET account = 'bob'",
    ])
  func changesInStorageAreDetected(sql: String) throws {
    try vault.put(account(bob))
    _ = try codes(1, in: vault)
    try fixture.raw { try $0.execute(sql) }
    let name = sql.contains("bob") ? bob : alice
    #expect(throws: StateStoreError.corrupt(.oneTimePasswords(of: name))) {
      try vault.next(of: name, clock: clock())
    }
  }

  @Test("A new name takes the counter along, and who loses its keys loses this secret")
  func newNameTakesTheCounterAlongAndWhoLosesItsKeysLosesThisSecret() throws {
    _ = try codes(2, in: vault)
    try vault.rename(alice, to: bob, entry(.renamed, bob))
    #expect(try codes(1, of: bob, in: vault) == ["307694"])
    try vault.dropKeys(of: bob, entry(.disenrolled, bob))
    #expect(try vault.oneTimePasswords().isEmpty)
    try vault.store(counting, secret: secret, of: account(alice), at: server(acme), entry(.enrolled, alice))
    try vault.wipe(account: alice, entry(.removed, alice))
    #expect(try vault.oneTimePasswords().isEmpty)
  }

  // MARK: Protected by a PIN

  private func keepUnderPIN() throws {
    let setting = PINSetting(pin: pin("13579"), limit: 3, parameters: cheap)
    try vault.store(
      counting, secret: secret, of: account(bob), at: server(acme), under: setting, entry(.enrolled, bob))
  }

  @Test("The PIN has the secret, and without it there is no code") func pinHasTheSecretAndWithoutItThereIsNoCode()
    throws
  {
    try keepUnderPIN()
    for _ in 1...2 { #expect(try vault.next(of: bob, clock: clock()) == .pinWanted) }
    guard case .unlocked(let opened) = try vault.unlock(bob, with: pin("13579"), in: clock().environment) else {
      Issue.record("the PIN is right")
      return
    }
    #expect(bytes(opened) == bytes(secret))
    #expect(try vault.next(of: bob, unlocked: opened, clock: clock()).digits == "467851")
    #expect(try vault.oneTimePasswords()[bob]?.isUnderPIN == true)
    // A secret that is not needed is not accepted either.
    #expect(try vault.next(of: alice, unlocked: opened, clock: clock()) == .pinWanted)
  }

  @Test("An unfinished enrollment can delete them, and only their PIN")
  func unfinishedEnrollmentCanDeleteThemAndOnlyTheirPIN() throws {
    let setting = PINSetting(pin: pin("13579"), limit: 3, parameters: cheap)
    for (name, setting) in [(bob, setting), (carol, nil)] as [(AccountID, PINSetting?)] {
      let unfinished = account(name, stage: .enrolling)
      try vault.store(counting, secret: secret, of: unfinished, at: server(acme), under: setting, nil)
    }
    try vault.setPIN(of: carol, to: pin("24680"), keys: secret)
    for name in [bob, carol, carol] { try vault.dropOneTimePasswords(of: name) }
    #expect(try vault.oneTimePasswords().keys.elementsEqual([alice]))
    #expect(try vault.pinStatus(of: bob, in: clock().environment) == nil)
    #expect(try vault.pinStatus(of: carol, in: clock().environment) != nil)
    #expect(throws: StateStoreError.self) { try vault.dropOneTimePasswords(of: alice) }
    #expect(try codes(1, in: vault) == ["467851"])
  }

  @Test("An account that has changed meanwhile gets none") func accountThatHasChangedMeanwhileGetsNone() throws {
    let known = account(bob, stage: .enrolling)
    try vault.put(account(bob, stage: .enrolling, "changed"))
    #expect(throws: StateStoreError.self) {
      try vault.store(counting, secret: secret, of: known, at: server(acme), replacing: known, nil)
    }
    #expect(try vault.oneTimePasswords()[bob] == nil)
    try vault.put(known)
    try vault.store(counting, secret: secret, of: account(bob), at: server(acme), replacing: known, nil)
    #expect(try codes(1, of: bob, in: vault) == ["467851"])
  }

  @Test("The last wrong PIN takes the secret with it") func lastWrongPINTakesTheSecretWithIt() throws {
    try keepUnderPIN()
    for _ in 1...3 {
      let clock = clock()
      _ = try clock.waitOut { environment throws(StateStoreError) in
        try vault.unlock(bob, with: pin("24680"), in: environment)
      }
    }
    #expect(try vault.accounts().map(\.id) == [alice])
    #expect(try vault.oneTimePasswords()[bob] == nil)
  }
}

extension Vault {
  fileprivate func next(
    of account: AccountID, unlocked secret: SecretBytes? = nil, clock: PatientClock, notBefore earliest: Int64 = 0
  ) throws(StateStoreError) -> OneTimePasswordResult {
    try nextOneTimePassword(of: account, unlocked: secret, in: clock.environment, notBefore: earliest)
  }
}

extension OneTimePasswordResult {
  var digits: String? { if case .code(let code) = self { code.digits } else { nil } }
}

private func secretBytes(base32 text: String) -> SecretBytes { SecretBytes(copying: bytes(base32: text) ?? []) }
