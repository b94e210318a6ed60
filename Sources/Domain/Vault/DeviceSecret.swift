// SPDX-License-Identifier: Apache-2.0
import Cryptography
import Glibc
package import MobileAuth
import Secrets

/// The device secret: at least 32 bytes, not stored in the vault, from which the keys of the vault's records are
/// derived.
package struct DeviceSecret: Sendable {
  /// Where the device secret is stored.
  package enum Source: Sendable, Equatable {
    /// A systemd credential, encrypted to the board's TPM or host key if the board supports it.
    case systemdCredential(path: String)
    /// A file beside the vault: a copy of the whole SD card contains both.
    case file(path: String)
  }

  package let source: Source
  let bytes: SecretBytes

  static let credentialName = "approval-token.device-secret"
  static let fileName = "device-secret"

  /// Reads the systemd credential `approval-token.device-secret` if it exists, else the file `device-secret` in the
  /// state directory, which is created on the first run.
  /// - Parameters:
  ///   - stateDirectory: the directory of the vault; created if its parent exists.
  ///   - credentialsDirectory: the value of the environment variable `CREDENTIALS_DIRECTORY`.
  /// - Throws: `.corrupt` if a vault exists without its secret (no new secret is created then); `.io` if the
  ///   secret is invalid.
  package static func load(
    stateDirectory: String, credentialsDirectory: String?
  ) throws(StateStoreError) -> DeviceSecret {
    if let credentialsDirectory {
      let path = "\(credentialsDirectory)/\(credentialName)"
      if try StateDirectory.exists(path) {
        return DeviceSecret(source: .systemdCredential(path: path), bytes: try readCredential(path))
      }
    }
    try StateDirectory.prepare(stateDirectory)
    let path = "\(stateDirectory)/\(fileName)"
    // Look for the vault first: another process on its first run creates the secret before the vault.
    let hasVault = try StateDirectory.exists("\(stateDirectory)/\(Vault.fileName)")
    if try !StateDirectory.exists(path) {
      guard !hasVault else {
        throw .corrupt(
          .deviceSecret(directory: stateDirectory, file: path, credential: credentialName))
      }
      try makeFile(path, in: stateDirectory)
    }
    return DeviceSecret(source: .file(path: path), bytes: try readFile(path))
  }

  /// Reads 64 hexadecimal digits, with or without a line feed, or at least 32 raw bytes. systemd sets the file mode.
  private static func readCredential(_ path: String) throws(StateStoreError) -> SecretBytes {
    let bytes = try SecretFile.read(path) { _, count in
      (32...4096).contains(count) ? nil : "has \(count) bytes; it must have 32 to 4096 bytes, or 64 hexadecimal digits"
    }
    return secretBytes(ofHex: bytes) ?? bytes
  }

  private static func readFile(_ path: String) throws(StateStoreError) -> SecretBytes {
    try SecretFile.read(path) { status, count in
      if status.st_uid != geteuid() { return "belongs to user \(status.st_uid), not \(geteuid())" }
      if status.st_mode & 0o7777 != 0o400 { return "has mode \(String(status.st_mode & 0o7777, radix: 8)), not 400" }
      return count == 32 ? nil : "has \(count) bytes, not 32"
    }
  }

  private static func makeFile(_ path: String, in directory: String) throws(StateStoreError) {
    let draft = "\(path).\(Random.uuid())"
    // Also if it cannot be written: each start makes another one.
    defer { unlink(draft) }
    try SecretFile.write(Random.secret(32), to: draft)
    // `link` never replaces a file: if two processes run for the first time, one creates the secret and both read it.
    guard link(draft, path) == 0 || errno == EEXIST else { throw systemFault("link \(path)") }
    // Before the directory is synchronized: after a power loss the secret must not have two names.
    unlink(draft)
    try StateDirectory.synchronize(directory)
  }
}

/// Decodes exactly 64 hexadecimal digits with at most one line feed; nil for other texts.
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

/// The value of an ASCII hexadecimal digit. Letters have bit 6 set, and their low nibble starts at 1.
private func value(_ digit: UInt8) -> UInt8 { (digit & 0x0F) + (digit >> 6) * 9 }
