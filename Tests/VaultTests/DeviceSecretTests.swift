// SPDX-License-Identifier: Apache-2.0
import Glibc
import MobileAuth
import Testing
import Vault

@Suite(.timeLimit(.minutes(5))) struct `The device secret` {
  private let playground: Playground
  private var path: String { "\(playground.path)/device-secret" }
  private var credential: String { "\(playground.path)/approval-token.device-secret" }

  init() throws { playground = try Playground() }

  @Test func `Is made once, for its owner's eyes, and read from then on`() throws {
    let source = try playground.deviceSecret().source
    #expect(source == .file(path: path))
    #expect(permissions(of: path) == 0o400)
    let made = try contents(of: path)
    #expect(made.count == 32)
    #expect(Set(made).count > 8)
    #expect(names(in: playground.path) == ["device-secret"])
    #expect(try playground.deviceSecret().source == source)
    #expect(try contents(of: path) == made)
  }

  @Test func `Is another on every device`() throws {
    _ = try playground.deviceSecret()
    let other = try Playground()
    _ = try other.deviceSecret()
    #expect(try contents(of: path) != contents(of: "\(other.path)/device-secret"))
  }

  @Test func `Is not created again for a vault whose secret is missing`() throws {
    _ = try playground.vault()
    unlink(path)
    let fault = #expect(throws: CustodyFault.self) { try playground.deviceSecret() }
    guard case .damaged(let text)? = fault else {
      Issue.record("\(String(describing: fault))")
      return
    }
    #expect(text.contains("neither \(path) nor the systemd credential"))
    #expect(names(in: playground.path).filter { $0.hasPrefix("device-secret") } == [])
  }

  @Test(arguments: [(0o600, 32), (0o440, 32), (0o404, 32), (0o4400, 32), (0o400, 31), (0o400, 33), (0o400, 0)])
  func `In a file that is not as it was made, is refused and left alone`(mode: Int, size: Int) throws {
    let bytes = [UInt8](repeating: 7, count: size)
    try write(bytes, to: path, mode: mode_t(mode))
    expectRefusal(size == 32 ? "has mode \(String(mode, radix: 8)), not 400" : "has \(size) bytes, not 32")
    #expect(try contents(of: path) == bytes)
  }

  @Test func `Behind a symbolic link, as a directory or as a FIFO, is refused`() throws {
    let target = try Playground()
    _ = try target.deviceSecret()
    symlink("\(target.path)/device-secret", path)
    expectRefusal("open \(path): Too many levels of symbolic links")
    unlink(path)
    symlink("\(target.path)/nowhere", path)
    expectRefusal("open \(path): Too many levels of symbolic links")
    unlink(path)
    mkfifo(path, 0o400)
    expectRefusal("\(path) is not a regular file")
    unlink(path)
    mkdir(path, 0o400)
    expectRefusal("\(path) is not a regular file")
    rmdir(path)
  }

  @Test func `From systemd comes first, raw or in hexadecimal`() throws {
    _ = try playground.deviceSecret()
    let raw = (0..<32).map { UInt8($0 * 7) }
    let hex = raw.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
    let vaults = try Playground()
    for text in [raw, Array(hex.utf8), Array("\(hex.uppercased())\n".utf8)] {
      try write(text, to: credential)
      let secret = try DeviceSecret.load(stateDirectory: playground.path, credentialsDirectory: playground.path)
      #expect(secret.source == .systemdCredential(path: credential))
      // All three open the same vault, so the secrets are equal.
      _ = try Vault.open(directory: vaults.path, deviceSecret: secret)
      unlink(credential)
    }
    let file = try DeviceSecret.load(stateDirectory: playground.path, credentialsDirectory: playground.path)
    #expect(file.source == .file(path: path))
  }

  @Test(arguments: [0, 31, 4097])
  func `From systemd has a sensible size`(size: Int) throws {
    try write([UInt8](repeating: 7, count: size), to: credential)
    #expect(throws: CustodyFault.self) {
      try DeviceSecret.load(stateDirectory: playground.path, credentialsDirectory: playground.path)
    }
    #expect(!names(in: playground.path).contains("device-secret"))
  }

  @Test func `From systemd that looks almost like hexadecimal is raw`() throws {
    let vaults = try Playground()
    let digits = String(repeating: "ab", count: 31)
    for text in ["\(digits)ag", "\(digits)ab\n\n", "\(digits)a"] {
      try write(Array(text.utf8), to: credential)
      let secret = try DeviceSecret.load(stateDirectory: playground.path, credentialsDirectory: playground.path)
      _ = try Vault.open(directory: vaults.path, deviceSecret: secret)
      try write(Array("\(digits)ab".utf8), to: "\(credential).hex")
      unlink(credential)
      rename("\(credential).hex", credential)
      let other = try DeviceSecret.load(stateDirectory: playground.path, credentialsDirectory: playground.path)
      #expect(throws: CustodyFault.self) { try Vault.open(directory: vaults.path, deviceSecret: other) }
      for name in names(in: vaults.path) { unlink("\(vaults.path)/\(name)") }
      unlink(credential)
    }
  }

  private func expectRefusal(_ reason: String, sourceLocation: SourceLocation = #_sourceLocation) {
    let fault = #expect(throws: CustodyFault.self, sourceLocation: sourceLocation) { try playground.deviceSecret() }
    guard case .storage(let text)? = fault, text.hasSuffix(reason) else {
      Issue.record("\(String(describing: fault))", sourceLocation: sourceLocation)
      return
    }
  }
}
