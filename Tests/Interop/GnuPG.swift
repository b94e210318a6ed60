// SPDX-License-Identifier: Apache-2.0
import BuiltPrograms
import Foundation

/// Debian's GnuPG with a temporary home directory.
final class GnuPG {
  struct MissingProgramError: Error, CustomStringConvertible {
    let description = "no gpg here: install the package `gnupg`"
  }

  struct GnuPGError: Error, CustomStringConvertible {
    let description: String
  }

  /// The result of one run of `gpg`.
  struct Outcome {
    let output: [UInt8]
    /// `--status-fd` lines without their prefix.
    let status: [String]
    let complaints: String
    let exitCode: Int32

    /// The words of the first status line that begins with `keyword`.
    func words(after keyword: String) -> [String]? {
      status.lazy.map { $0.split(separator: " ").map(String.init) }.first { $0.first == keyword }.map {
        Array($0.dropFirst())
      }
    }
  }

  private let home: URL

  init() throws {
    guard FileManager.default.isExecutableFile(atPath: "/usr/bin/gpg") else { throw MissingProgramError() }
    // Short, because the path of the agent's socket is limited to 107 bytes.
    var path = Array("/tmp/gpg-XXXXXX".utf8CString)
    guard mkdtemp(&path) != nil else { throw GnuPGError(description: "mkdtemp: errno \(errno)") }
    home = URL(fileURLWithPath: String(decoding: path.dropLast().map(UInt8.init(bitPattern:)), as: UTF8.self))
  }

  deinit {
    _ = try? launch("/usr/bin/gpgconf", ["--homedir", home.path, "--kill", "all"])
    // Removal can fail while the agent, when it ends, removes its sockets.
    for _ in 0..<10 where FileManager.default.fileExists(atPath: home.path) {
      try? FileManager.default.removeItem(at: home)
    }
  }

  /// Runs `gpg`, which reads `input` from a file, and fails unless gpg succeeds.
  @discardableResult
  func run(_ arguments: String..., reading input: [UInt8]? = nil) throws -> Outcome {
    let outcome = try attempt(arguments, reading: input)
    guard outcome.exitCode == 0 else {
      throw GnuPGError(description: "gpg \(arguments): exit \(outcome.exitCode)\n\(outcome.complaints)")
    }
    return outcome
  }

  func attempt(_ arguments: [String], reading input: [UInt8]? = nil) throws -> Outcome {
    let (source, target) = (home.appendingPathComponent("in"), home.appendingPathComponent("out"))
    try? FileManager.default.removeItem(at: target)
    if let input { try Data(input).write(to: source) }
    let (exitCode, status, complaints) = try launch(
      "/usr/bin/gpg",
      [
        "--homedir", home.path, "--batch", "--no-tty", "--yes", "--pinentry-mode", "loopback", "--passphrase", "",
        "--trust-model", "always", "--status-fd", "1", "--output", target.path,
      ] + arguments + (input == nil ? [] : [source.path]))
    return Outcome(
      output: (try? Data(contentsOf: target)).map(Array.init) ?? [],
      status: status.split(separator: "\n").map { String($0.trimmingPrefix("[GNUPG:] ")) },
      complaints: complaints, exitCode: exitCode)
  }

  /// Revokes with the certificate that gpg prepares for every new key, which is disabled by a colon.
  func revoke(_ fingerprint: String) throws {
    let prepared = home.appendingPathComponent("openpgp-revocs.d/\(fingerprint).rev")
    let armed = try String(contentsOf: prepared, encoding: .utf8).replacingOccurrences(
      of: ":-----BEGIN", with: "-----BEGIN")
    try run("--import", reading: Array(armed.utf8))
  }

  private func launch(_ program: String, _ arguments: [String]) throws -> (Int32, output: String, errors: String) {
    let output = try BuiltPrograms.run(program, arguments)
    return (output.status, output.text, output.errors)
  }
}

extension GnuPG {
  /// Generates a key with GnuPG that has the project's profile.
  func generateKey(_ userID: String) throws -> String {
    try generateKey(userID, "future-default", "default", "never")
  }

  /// - Parameter kind: algorithm, usage and expiration, as for `--quick-generate-key`.
  /// - Returns: the fingerprint.
  func generateKey(_ userID: String, _ kind: String...) throws -> String {
    let outcome = try attempt(["--quick-generate-key", userID] + kind)
    guard let fingerprint = outcome.words(after: "KEY_CREATED")?.last else {
      throw GnuPGError(description: "gpg made no key\n\(outcome.complaints)")
    }
    return fingerprint
  }

  func export(_ fingerprints: String...) throws -> [UInt8] {
    try attempt(["--export"] + fingerprints).output
  }
}
