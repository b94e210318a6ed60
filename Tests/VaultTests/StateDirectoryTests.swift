// SPDX-License-Identifier: Apache-2.0
import Glibc
import MobileAuth
import Testing
import Vault

@Suite("The state directory", .timeLimit(.minutes(5))) struct StateDirectoryTests {
  private let fixture: VaultFixture
  private let secret: DeviceSecret

  init() throws {
    fixture = try VaultFixture()
    secret = try fixture.deviceSecret()
  }

  @Test("And its files are for their owner only, with any umask") func andItsFilesAreForTheirOwnerOnlyWithAnyUmask()
    async
  {
    await #expect(processExitsWith: .success) { [path = fixture.path as String] in
      umask(0)
      let inner = "\(path)/inner"
      let vault = try Vault.open(
        directory: inner, deviceSecret: try DeviceSecret.load(stateDirectory: inner, credentialsDirectory: nil))
      try vault.record(entry(.opened))
      #expect(permissions(of: inner) == 0o700)
      #expect(names(in: inner) == ["device-secret", "vault.sqlite3", "vault.sqlite3-shm", "vault.sqlite3-wal"])
      #expect(permissions(of: "\(inner)/vault.sqlite3") == 0o600)
      #expect(permissions(of: "\(inner)/vault.sqlite3-shm") == 0o600)
      #expect(permissions(of: "\(inner)/vault.sqlite3-wal") == 0o600)
      for name in names(in: inner) { unlink("\(inner)/\(name)") }
      rmdir(inner)
    }
  }

  @Test("That others can enter is refused", arguments: [0o701, 0o710, 0o750, 0o755, 0o777, 0o1777] as [mode_t])
  func thatOthersCanEnterIsRefused(mode: mode_t) throws {
    chmod(fixture.path, mode)
    expectRefusal("others can enter it; chmod 700 it")
    #expect(throws: StateStoreError.self) { try fixture.deviceSecret() }
    chmod(fixture.path, 0o700)
    _ = try Vault.open(directory: fixture.path, deviceSecret: secret)
  }

  @Test("That belongs to another user is refused") func thatBelongsToAnotherUserIsRefused() throws {
    if geteuid() == 0 {
      chown(fixture.path, 65_534, 65_534)
      expectRefusal("belongs to user 65534, this process runs as user 0")
      chown(fixture.path, 0, 0)
    } else {
      let fault = #expect(throws: StateStoreError.self) { try Vault.open(directory: "/root", deviceSecret: secret) }
      #expect("\(fault!)".contains("/root: belongs to user 0"))
    }
  }

  @Test("That is a file, or has no parent, is refused") func thatIsAFileOrHasNoParentIsRefused() throws {
    let file = "\(fixture.path)/device-secret"
    let fault = #expect(throws: StateStoreError.self) { try Vault.open(directory: file, deviceSecret: secret) }
    #expect(fault == .io(call: file, reason: "not a directory"))
    let missing = "\(fixture.path)/a/b"
    let other = #expect(throws: StateStoreError.self) { try Vault.open(directory: missing, deviceSecret: secret) }
    #expect(other == .io(call: "mkdir \(missing)", reason: "the directory \(fixture.path)/a does not exist"))
  }

  @Test("May be reached through a symbolic link, as systemd's DynamicUser does")
  func mayBeReachedThroughASymbolicLinkAsSystemdsDynamicUserDoes() throws {
    let other = try VaultFixture()
    symlink(fixture.path, "\(other.path)/link")
    let vault = try Vault.open(directory: "\(other.path)/link", deviceSecret: secret)
    try vault.record(entry(.opened))
    #expect(try fixture.vault().auditLines(newest: 9).count == 1)
  }

  @Test("With a vault that others can read is refused") func withAVaultThatOthersCanReadIsRefused() throws {
    _ = try fixture.vault()
    chmod(fixture.database, 0o640)
    expectRefusal("not a regular file that only its owner can read and write (SQLite 3)")
  }

  private func expectRefusal(_ reason: String, sourceLocation: SourceLocation = #_sourceLocation) {
    let fault = #expect(throws: StateStoreError.self, sourceLocation: sourceLocation) {
      try Vault.open(directory: fixture.path, deviceSecret: secret)
    }
    guard case .io? = fault, "\(fault!)".hasSuffix(reason) else {
      Issue.record("\(String(describing: fault))", sourceLocation: sourceLocation)
      return
    }
  }
}
