// SPDX-License-Identifier: Apache-2.0
import Cryptography
import Foundation
import Glibc
import Secrets

/// The files and systemd credentials with the pepper, and with the former one until it is retired.
extension ServerDirectory {
  var pepperFile: String { file("pepper") }
  var formerPepperFile: String { file("pepper.former") }

  /// The path of the pepper.
  var pepperSource: String { credential("token-server-pepper") ?? pepperFile }

  /// The path of the former pepper; nil if there is none.
  var formerPepperSource: String? {
    credential("token-server-pepper-former")
      ?? (FileManager.default.fileExists(atPath: formerPepperFile) ? formerPepperFile : nil)
  }

  /// The key of all stored verifiers, from a systemd credential or the file that `init` created. Without it, an
  /// attacker cannot use a copy of the database to guess a code or token.
  func pepper() throws -> SecretBytes { try pepper(in: pepperSource) }

  /// - Returns: nil if there is no former pepper, or if it is the same.
  func formerPepper(of pepper: SecretBytes) throws -> SecretBytes? {
    guard let former = try formerPepperSource.map({ try self.pepper(in: $0) }) else { return nil }
    return SecretBytes.constantTimeEqual(former, pepper) ? nil : former
  }

  /// Makes a new pepper, and the present one the former one. After a crash at any moment either only the former pepper
  /// exists under both names, or each is complete.
  /// - Throws: `DirectoryError`, also if the pepper is a credential, which only the operator can replace.
  func replacePepper() throws {
    guard pepperSource == pepperFile else {
      throw DirectoryError(
        description:
          "the pepper is a systemd credential, which this command cannot replace: load the present pepper as "
          + "the credential token-server-pepper-former and 32 new random bytes as token-server-pepper, "
          + "and run this command again")
    }
    var bytes = try read(pepperFile)
    defer { cleanse(&bytes) }
    try replace(formerPepperFile, by: bytes)
    var new = Random.bytes(32)
    defer { cleanse(&new) }
    try replace(pepperFile, by: new)
  }

  /// Deletes the file with the former pepper, durably.
  func deleteFormerPepper() throws {
    guard unlink(formerPepperFile) == 0 || errno == ENOENT else {
      throw DirectoryError(description: "cannot delete \(formerPepperFile): \(String(cString: strerror(errno)))")
    }
    try makeNamesDurable()
  }

  /// What may be missing if the pepper cannot be used; nil for a process with systemd credentials.
  static var credentialAdvice: String? {
    credentialsDirectory == nil ? "if the pepper is a systemd credential, load it for this command" : nil
  }

  private static var credentialsDirectory: String? { ProcessInfo.processInfo.environment["CREDENTIALS_DIRECTORY"] }

  private func credential(_ name: String) -> String? {
    Self.credentialsDirectory.map { "\($0)/\(name)" }
      .flatMap { FileManager.default.fileExists(atPath: $0) ? $0 : nil }
  }

  private func pepper(in source: String) throws -> SecretBytes {
    var bytes: [UInt8]
    do { bytes = try read(source) } catch let error as DirectoryError {
      throw DirectoryError(description: error.description + (Self.credentialAdvice.map { "; \($0)" } ?? ""))
    }
    defer { cleanse(&bytes) }
    guard bytes.count == 32 else {
      throw DirectoryError(description: "\(source) must have 32 bytes, it has \(bytes.count)")
    }
    return SecretBytes(copying: bytes)
  }

  /// Writes a file with the owner and the mode of the pepper. At a crash it has the old or the new contents.
  private func replace(_ path: String, by bytes: [UInt8]) throws {
    let attributes = try FileManager.default.attributesOfItem(atPath: pepperFile)
    guard attributes[.type] as? FileAttributeType == .typeRegular, let mode = attributes[.posixPermissions] as? Int
    else { throw DirectoryError(description: "\(pepperFile) is not a regular file") }
    let draft = path + ".new"
    unlink(draft)
    try Self.write(bytes, to: draft)
    var kept = attributes.filter { [.ownerAccountID, .groupOwnerAccountID].contains($0.key) }
    kept[.posixPermissions] = mode & 0o660
    do { try FileManager.default.setAttributes(kept, ofItemAtPath: draft) } catch {
      throw DirectoryError(description: "cannot give \(draft) the owner and mode of \(pepperFile): \(error)")
    }
    guard rename(draft, path) == 0 else {
      throw DirectoryError(description: "cannot replace \(path): \(String(cString: strerror(errno)))")
    }
    try makeNamesDurable()
  }

  private func makeNamesDurable() throws {
    let descriptor = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
    defer { close(descriptor) }
    guard descriptor >= 0, fsync(descriptor) == 0 else {
      throw DirectoryError(description: "cannot write \(path) durably: \(String(cString: strerror(errno)))")
    }
  }
}
