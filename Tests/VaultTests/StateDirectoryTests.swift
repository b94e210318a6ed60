// SPDX-License-Identifier: Apache-2.0
import Glibc
import MobileAuth
import Testing
import Vault

@Suite(.timeLimit(.minutes(5))) struct `The state directory` {
  private let playground: Playground
  private let secret: DeviceSecret

  init() throws {
    playground = try Playground()
    secret = try playground.deviceSecret()
  }

  @Test func `And its files are for their owner only, with any umask`() throws {
    let inner = "\(playground.path)/inner"
    let before = umask(0)
    defer { umask(before) }
    let vault = try Vault.open(
      directory: inner, deviceSecret: try DeviceSecret.load(stateDirectory: inner, credentialsDirectory: nil))
    try vault.record(entry(.opened))
    #expect(permissions(of: inner) == 0o700)
    #expect(names(in: inner) == ["device-secret", "vault.sqlite3", "vault.sqlite3-journal"])
    #expect(permissions(of: "\(inner)/vault.sqlite3") == 0o600)
    #expect(permissions(of: "\(inner)/vault.sqlite3-journal") == 0o600)
    for name in names(in: inner) { unlink("\(inner)/\(name)") }
    rmdir(inner)
  }

  @Test(arguments: [0o701, 0o710, 0o750, 0o755, 0o777, 0o1777] as [mode_t])
  func `That others can enter is refused`(mode: mode_t) throws {
    chmod(playground.path, mode)
    expectRefusal("others can enter it; chmod 700 it")
    #expect(throws: CustodyFault.self) { try playground.deviceSecret() }
    chmod(playground.path, 0o700)
    _ = try Vault.open(directory: playground.path, deviceSecret: secret)
  }

  @Test func `That belongs to another user is refused`() throws {
    if geteuid() == 0 {
      chown(playground.path, 65_534, 65_534)
      expectRefusal("belongs to user 65534, this process runs as user 0")
      chown(playground.path, 0, 0)
    } else {
      let fault = #expect(throws: CustodyFault.self) { try Vault.open(directory: "/root", deviceSecret: secret) }
      #expect("\(fault!)".contains("/root belongs to user 0"))
    }
  }

  @Test func `That is a file, or has no parent, is refused`() throws {
    let file = "\(playground.path)/device-secret"
    let fault = #expect(throws: CustodyFault.self) { try Vault.open(directory: file, deviceSecret: secret) }
    #expect(fault == .storage("\(file) is not a directory"))
    let missing = "\(playground.path)/a/b"
    let other = #expect(throws: CustodyFault.self) { try Vault.open(directory: missing, deviceSecret: secret) }
    #expect(other == .storage("mkdir \(missing): No such file or directory"))
  }

  @Test func `May be reached through a symbolic link, as systemd's DynamicUser does`() throws {
    let other = try Playground()
    symlink(playground.path, "\(other.path)/link")
    let vault = try Vault.open(directory: "\(other.path)/link", deviceSecret: secret)
    try vault.record(entry(.opened))
    #expect(try playground.vault().auditLines(newest: 9).count == 1)
  }

  @Test func `With a vault that others can read is refused`() throws {
    _ = try playground.vault()
    chmod(playground.database, 0o640)
    expectRefusal("not a regular file that only its owner can read and write (SQLite 3)")
  }

  private func expectRefusal(_ reason: String, sourceLocation: SourceLocation = #_sourceLocation) {
    let fault = #expect(throws: CustodyFault.self, sourceLocation: sourceLocation) {
      try Vault.open(directory: playground.path, deviceSecret: secret)
    }
    guard case .storage(let text)? = fault, text.hasSuffix(reason) else {
      Issue.record("\(String(describing: fault))", sourceLocation: sourceLocation)
      return
    }
  }
}
