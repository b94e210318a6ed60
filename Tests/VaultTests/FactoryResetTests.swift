// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import Glibc
import MobileAuth
import Secrets
import Testing
import Vault

@Suite(.timeLimit(.minutes(5))) struct FactoryResetTests {
  private let fixture: VaultFixture
  private var reset: FactoryReset { FactoryReset(directory: fixture.path) }

  init() throws {
    fixture = try VaultFixture()
    let vault = try fixture.vault()
    try vault.put(server(acme))
    try vault.put(account(alice))
  }

  @Test("A finished reset leaves nothing of the token, and other files") func removesEverything() throws {
    try write([1], to: "\(fixture.path)/serve.lock")
    #expect(try !reset.hasBegun)
    try reset.begin()
    #expect(try reset.hasBegun)
    try reset.finish()
    #expect(try !reset.hasBegun)
    #expect(names(in: fixture.path) == ["serve.lock"])
    let vault = try fixture.vault()
    #expect(try vault.accounts().isEmpty && vault.servers().isEmpty)
  }

  @Test("The files are overwritten before they are removed") func overwrites() throws {
    let files = ["vault.sqlite3", "device-secret"]
    // Other names of the same files.
    for file in files { #expect(link("\(fixture.path)/\(file)", "\(fixture.path)/kept-\(file)") == 0) }
    try reset.begin()
    try reset.finish()
    for file in files {
      let left = try contents(of: "\(fixture.path)/kept-\(file)")
      #expect(!left.isEmpty && left.allSatisfy { $0 == 0 }, "\(file)")
    }
  }

  @Test("A reset that ended anywhere is finished by the next one", arguments: 0..<4)
  func isResumed(removed: Int) throws {
    try reset.begin()
    for name in names(in: fixture.path).filter({ $0 != FactoryReset.markerName }).prefix(removed) {
      unlink("\(fixture.path)/\(name)")
    }
    #expect(try reset.hasBegun)
    try reset.begin()
    try reset.finish()
    #expect(names(in: fixture.path).isEmpty)
    try reset.finish()
  }

  @Test("A symbolic link is removed, and the file that it names stays") func followsNoLink() throws {
    let other = try VaultFixture()
    try write([7], to: "\(other.path)/file")
    unlink("\(fixture.path)/device-secret")
    #expect(symlink("\(other.path)/file", "\(fixture.path)/device-secret") == 0)
    try reset.begin()
    try reset.finish()
    #expect(try contents(of: "\(other.path)/file") == [7])
    #expect(names(in: fixture.path).isEmpty)
  }
}
