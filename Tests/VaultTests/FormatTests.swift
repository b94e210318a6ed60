// SPDX-License-Identifier: Apache-2.0
import MobileAuth
import SQLite
import Testing

@testable import Vault

/// The rule of docs/packaging.md, with two made-up releases after this one: no release has another format yet.
@Suite("Formats of two releases", .timeLimit(.minutes(5))) struct FormatTests {
  private static let present = Schema.newestFormat
  /// The release after this one adds a table to the vault.
  private static let next = made(by: 1)
  /// The release after that adds another one.
  private static let afterNext = made(by: 2)

  private let fixture: VaultFixture

  init() throws { fixture = try VaultFixture(in: "/dev/shm") }

  private static func made(by releases: Int) -> VaultFormats {
    VaultFormats(
      steps: { keys, upgrade in
        Schema.steps(keys, upgrade)
          + (1...releases).map { release -> VaultFormats.Step in
            { try $0.execute("CREATE TABLE added\(release) (text TEXT) STRICT") }
          }
      }, former: present + releases - 1, newest: present + releases)
  }

  private func open(_ formats: VaultFormats = .current, onTrial: Bool = false, readOnly: Bool = false) throws -> Vault {
    try Vault.open(
      directory: fixture.path, deviceSecret: fixture.deviceSecret(), readOnly: readOnly, onTrial: onTrial,
      formats: formats)
  }

  /// A vault of this release, with an account and one used attempt at its PIN.
  private func makeVault() throws {
    let vault = try open()
    try vault.put(server(acme))
    try vault.put(account(alice))
    try vault.setPIN(of: alice, to: pin("13579"), keys: secrets("keys"))
    try vault.expectWrong(alice)
  }

  private var format: Int { get throws { try fixture.raw { try $0.formatVersion() } } }

  /// Writes as code of the next release has to: into its table only where there is one.
  private func add(_ text: String, to vault: Vault) throws {
    try vault.transaction { connection in
      guard try connection.formatVersion() > Self.present else { return }
      try connection.run("INSERT INTO added1 VALUES (?)", text)
    }
  }

  @Test("What a release on trial has written is read by the one before, and no attempt at the PIN is given back")
  func wayBack() throws {
    try makeVault()
    do {
      let vault = try open(Self.next, onTrial: true)
      try add("a", to: vault)
      try vault.put(account(bob))
      try vault.expectWrong(alice)
    }
    #expect(try format == Self.present)
    let vault = try open()
    #expect(try vault.account(bob).id == bob)
    #expect(try vault.unlock(alice, "13579").text == "keys")
    try vault.expectWrong(alice)
    try vault.expectWrong(alice)
    #expect(try vault.unlock(alice, "00000").text == "wiped")
  }

  @Test("After an attempt in each release, the third one is the last") func attemptsInBoth() throws {
    try makeVault()
    try open(Self.next, onTrial: true).expectWrong(alice)
    #expect(try open().unlock(alice, "00000").text == "wiped")
  }

  @Test("A release that was marked good adopts its format with all accounts; the one before refuses it then")
  func adoption() throws {
    try makeVault()
    _ = try open(Self.next, onTrial: true)
    do {
      let vault = try open(Self.next)
      try add("a", to: vault)
      try vault.expectWrong(alice)
    }
    #expect(try format == Self.present + 1)
    #expect(try fixture.raw { try $0.rows("SELECT text FROM added1") { try $0.text(0) } } == ["a"])
    let before = try contents(of: fixture.database)
    for onTrial in [false, true] {
      #expect(throws: StateStoreError.newerFormat(Self.present + 1, known: Self.present)) {
        try open(onTrial: onTrial)
      }
    }
    #expect(try contents(of: fixture.database) == before)
    // Also a start on trial, for example after an attempt of the former slot, keeps it.
    #expect(try open(Self.next, onTrial: true).unlock(alice, "00000").text == "wiped")
    #expect(try format == Self.present + 1)
  }

  @Test("A vault that is made on trial is read by the release before") func newVault() throws {
    _ = try open(Self.next, onTrial: true)
    #expect(try format == Self.present)
    #expect(try open().accounts().isEmpty)
    let other = try VaultFixture(in: "/dev/shm")
    _ = try Vault.open(directory: other.path, deviceSecret: other.deviceSecret(), formats: Self.next)
    #expect(try other.raw { try $0.formatVersion() } == Self.present + 1)
  }

  @Test("A program that migrates nothing reads both formats") func readOnly() throws {
    try makeVault()
    #expect(try open(Self.next, readOnly: true).account(alice).id == alice)
    #expect(try format == Self.present)
    #expect(throws: StateStoreError.self) { try open(Self.afterNext, readOnly: true) }
    _ = try open(Self.next)
    #expect(try open(Self.next, readOnly: true).account(alice).id == alice)
  }

  @Test("A vault older than the release before is refused on trial, untouched, and migrated otherwise")
  func olderFormat() throws {
    try makeVault()
    let before = try contents(of: fixture.database)
    let fault = #expect(throws: StateStoreError.olderFormat(Self.present, known: Self.present + 1)) {
      try open(Self.afterNext, onTrial: true)
    }
    #expect("\(fault!)".hasPrefix("the vault has format \(Self.present), and this version, on trial after an update, "))
    #expect(try contents(of: fixture.database) == before)
    #expect(try open().account(alice).id == alice)
    #expect(try open(Self.afterNext).account(alice).id == alice)
    #expect(try format == Self.present + 2)
  }
}
