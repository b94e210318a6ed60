import Cryptography
import Glibc
public import MobileAuth
import Secrets

/// What makes a vault's sealed records readable on this device: 32 bytes or more that are not in the vault.
public struct DeviceSecret: Sendable {
  /// Where it came from.
  public enum Source: Sendable, Equatable {
    /// systemd keeps it, if the board can, encrypted to its TPM or host key.
    case systemdCredential(path: String)
    /// It lies beside the vault: whoever copies the whole card has both.
    case file(path: String)
  }

  public let source: Source
  let bytes: SecretBytes

  static let credentialName = "approval-token.device-secret"
  static let fileName = "device-secret"

  /// Reads the systemd credential `approval-token.device-secret` if there is one, else the file `device-secret` in
  /// the state directory, which is made on the first run.
  /// - Parameter stateDirectory: where the vault is or will be; made if its parent exists.
  /// - Parameter credentialsDirectory: the environment's `CREDENTIALS_DIRECTORY`.
  /// - Throws: `.damaged` if there is a vault but its secret is gone, and never makes a new one then; `.storage` if
  ///   a secret is there but is not as it should be.
  public static func load(
    stateDirectory: String, credentialsDirectory: String?
  ) throws(CustodyFault) -> DeviceSecret {
    if let credentialsDirectory {
      let path = "\(credentialsDirectory)/\(credentialName)"
      if try StateDirectory.exists(path) {
        return DeviceSecret(source: .systemdCredential(path: path), bytes: try readCredential(path))
      }
    }
    try StateDirectory.prepare(stateDirectory)
    let path = "\(stateDirectory)/\(fileName)"
    // The vault is looked for first: another process on its first run makes the secret first, then the vault.
    let hasVault = try StateDirectory.exists("\(stateDirectory)/\(Vault.fileName)")
    if try !StateDirectory.exists(path) {
      guard !hasVault else {
        throw .damaged(
          "there is a \(Vault.fileName) in \(stateDirectory), but neither \(path) nor the systemd credential "
            + "\(credentialName) that opens it")
      }
      try makeFile(path, in: stateDirectory)
    }
    return DeviceSecret(source: .file(path: path), bytes: try readFile(path))
  }

  /// 64 hexadecimal digits, with or without a line's end, or at least 32 raw bytes. systemd looks after the mode.
  private static func readCredential(_ path: String) throws(CustodyFault) -> SecretBytes {
    let bytes = try SecretFile.read(path) { _, count in
      (32...4096).contains(count) ? nil : "has \(count) bytes; 32 to 4096, or 64 hexadecimal digits, are wanted"
    }
    return secretBytes(ofHex: bytes) ?? bytes
  }

  private static func readFile(_ path: String) throws(CustodyFault) -> SecretBytes {
    try SecretFile.read(path) { status, count in
      if status.st_uid != geteuid() { return "belongs to user \(status.st_uid), not \(geteuid())" }
      if status.st_mode & 0o7777 != 0o400 { return "has mode \(String(status.st_mode & 0o7777, radix: 8)), not 400" }
      return count == 32 ? nil : "has \(count) bytes, not 32"
    }
  }

  private static func makeFile(_ path: String, in directory: String) throws(CustodyFault) {
    let draft = "\(path).\(Random.uuid())"
    try SecretFile.write(Random.secret(32), to: draft)
    defer { unlink(draft) }
    // link never replaces a file: of two processes on their first run, one makes the secret and both read it.
    guard link(draft, path) == 0 || errno == EEXIST else { throw systemFault("link \(path)") }
    try StateDirectory.synchronize(directory)
  }
}

/// The bytes that exactly 64 hexadecimal digits and at most one line feed stand for, else nil.
private func secretBytes(ofHex text: SecretBytes) -> SecretBytes? {
  text.withExposedSecret { text in
    guard text.count == 64 || text.count == 65 && text[64] == UInt8(ascii: "\n") else { return nil }
    let digits = text.prefix(64)
    guard digits.allSatisfy({ Character(Unicode.Scalar($0)).isHexDigit && $0 < 0x80 }) else { return nil }
    return SecretBytes(count: 32) { (target: UnsafeMutableRawBufferPointer) in
      for index in 0..<32 { target[index] = value(digits[2 * index]) << 4 | value(digits[2 * index + 1]) }
    }
  }
}

/// Of an ASCII hexadecimal digit: letters have bit 6 set, and their low nibble counts from 1.
private func value(_ digit: UInt8) -> UInt8 { (digit & 0x0F) + (digit >> 6) * 9 }
