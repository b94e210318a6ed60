// SPDX-License-Identifier: Apache-2.0
import Glibc
import MobileAuth
import Testing
import Vault

@Suite("The device secret", .timeLimit(.minutes(5))) struct DeviceSecretTests {
  private let fixture: VaultFixture
  private var path: String { "\(fixture.path)/device-secret" }
  private var credential: String { "\(fixture.path)/approval-token.device-secret" }

  init() throws { fixture = try VaultFixture() }

  @Test("Is made once, for its owner's eyes, and read from then on") func isMadeOnceForItsOwnersEyesAndReadFromThenOn()
    throws
  {
    let source = try fixture.deviceSecret().source
    #expect(source == .file(path: path))
    #expect(permissions(of: path) == 0o400)
    let made = try contents(of: path)
    #expect(made.count == 32)
    #expect(Set(made).count > 8)
    #expect(names(in: fixture.path) == ["device-secret"])
    #expect(try fixture.deviceSecret().source == source)
    #expect(try contents(of: path) == made)
  }

  @Test("Is another on every device") func isAnotherOnEveryDevice() throws {
    _ = try fixture.deviceSecret()
    let other = try VaultFixture()
    _ = try other.deviceSecret()
    #expect(try contents(of: path) != contents(of: "\(other.path)/device-secret"))
  }

  @Test("Is not created again for a vault whose secret is missing")
  func isNotCreatedAgainForAVaultWhoseSecretIsMissing() throws {
    _ = try fixture.vault()
    unlink(path)
    let fault = #expect(throws: StateStoreError.self) { try fixture.deviceSecret() }
    let subject = StateStoreError.Subject.deviceSecret(
      directory: fixture.path, file: path, credential: "approval-token.device-secret")
    #expect(fault == .corrupt(subject))
    #expect(
      fault?.description.contains("neither \(path) nor the systemd credential approval-token.device-secret exists")
        == true)
    #expect(names(in: fixture.path).filter { $0.hasPrefix("device-secret") } == [])
  }

  @Test(
    "In a file that is not as it was made, is refused and left alone",
    arguments: [(0o600, 32), (0o440, 32), (0o404, 32), (0o4400, 32), (0o400, 31), (0o400, 33), (0o400, 0)])
  func inAFileThatIsNotAsItWasMadeIsRefusedAndLeftAlone(mode: Int, size: Int) throws {
    let bytes = [UInt8](repeating: 7, count: size)
    try write(bytes, to: path, mode: mode_t(mode))
    expectRefusal(size == 32 ? "has mode \(String(mode, radix: 8)), not 400" : "has \(size) bytes, not 32")
    #expect(try contents(of: path) == bytes)
  }

  @Test("Behind a symbolic link, as a directory or as a FIFO, is refused")
  func behindASymbolicLinkAsADirectoryOrAsAFIFOIsRefused() throws {
    let target = try VaultFixture()
    _ = try target.deviceSecret()
    symlink("\(target.path)/device-secret", path)
    expectRefusal("open \(path): Too many levels of symbolic links")
    unlink(path)
    symlink("\(target.path)/nowhere", path)
    expectRefusal("open \(path): Too many levels of symbolic links")
    unlink(path)
    mkfifo(path, 0o400)
    expectRefusal("\(path): not a regular file")
    unlink(path)
    mkdir(path, 0o400)
    expectRefusal("\(path): not a regular file")
    rmdir(path)
  }

  @Test("From systemd comes first, raw or in hexadecimal") func fromSystemdComesFirstRawOrInHexadecimal() throws {
    _ = try fixture.deviceSecret()
    let raw = (0..<32).map { UInt8($0 * 7) }
    let hex = raw.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
    let vaults = try VaultFixture()
    for text in [raw, Array(hex.utf8), Array("\(hex.uppercased())\n".utf8)] {
      try write(text, to: credential)
      let secret = try DeviceSecret.load(stateDirectory: fixture.path, credentialsDirectory: fixture.path)
      #expect(secret.source == .systemdCredential(path: credential))
      // All three open the same vault, so the secrets are equal.
      _ = try Vault.open(directory: vaults.path, deviceSecret: secret)
      unlink(credential)
    }
    let file = try DeviceSecret.load(stateDirectory: fixture.path, credentialsDirectory: fixture.path)
    #expect(file.source == .file(path: path))
  }

  @Test("From systemd has a sensible size", arguments: [0, 31, 4097])
  func fromSystemdHasASensibleSize(size: Int) throws {
    try write([UInt8](repeating: 7, count: size), to: credential)
    #expect(throws: StateStoreError.self) {
      try DeviceSecret.load(stateDirectory: fixture.path, credentialsDirectory: fixture.path)
    }
    #expect(!names(in: fixture.path).contains("device-secret"))
  }

  @Test("From systemd that looks almost like hexadecimal is raw") func fromSystemdThatLooksAlmostLikeHexadecimalIsRaw()
    throws
  {
    let vaults = try VaultFixture()
    let digits = String(repeating: "ab", count: 31)
    for text in ["\(digits)ag", "\(digits)ab\n\n", "\(digits)a"] {
      try write(Array(text.utf8), to: credential)
      let secret = try DeviceSecret.load(stateDirectory: fixture.path, credentialsDirectory: fixture.path)
      _ = try Vault.open(directory: vaults.path, deviceSecret: secret)
      try write(Array("\(digits)ab".utf8), to: "\(credential).hex")
      unlink(credential)
      rename("\(credential).hex", credential)
      let other = try DeviceSecret.load(stateDirectory: fixture.path, credentialsDirectory: fixture.path)
      #expect(throws: StateStoreError.self) { try Vault.open(directory: vaults.path, deviceSecret: other) }
      for name in names(in: vaults.path) { unlink("\(vaults.path)/\(name)") }
      unlink(credential)
    }
  }

  private func expectRefusal(_ reason: String, sourceLocation: SourceLocation = #_sourceLocation) {
    let fault = #expect(throws: StateStoreError.self, sourceLocation: sourceLocation) { try fixture.deviceSecret() }
    guard case .io? = fault, "\(fault!)".hasSuffix(reason) else {
      Issue.record("\(String(describing: fault))", sourceLocation: sourceLocation)
      return
    }
  }
}
