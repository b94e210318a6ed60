// SPDX-License-Identifier: Apache-2.0
import ApprovalTokenCommands
import Glibc
import Vault

extension Doctor {
  /// How the encrypted credentials begin that need a TPM: the identifiers of the keys in systemd's `creds-util.h`, in
  /// Base64; without and with a signed PCR policy, each without and with the key of the installation.
  private static let tpmKeys = [
    "DHzAexF2RZGcSwvqCLwg", "k6iUCUh0RJCQyvL8k8q1", "+vfrk0HjQSyhpDb5Wik2", "r0lQqEkTTrGnOEYwT/MM",
  ]

  /// - Parameter encrypted: the credential as the package stores it; it begins with the kind of its key.
  static func check(
    _ source: DeviceSecret.Source, encrypted: String = "/etc/approval-token/device-secret.cred"
  ) -> CheckResult {
    let subject = "device secret"
    switch source {
    case .systemdCredential(let path):
      guard let beginning = beginning(of: encrypted, count: 24) else {
        return CheckResult(
          verdict: .note, subject: subject,
          text:
            "systemd credential \(path); whether a TPM encrypts it is not known, because \(encrypted) cannot be read: "
            + "\(String(cString: strerror(errno))). `chgrp approval-token` and `chmod 640` make it readable")
      }
      guard tpmKeys.contains(where: beginning.hasPrefix) else {
        return CheckResult(
          verdict: .note, subject: subject,
          text: "systemd credential \(path), encrypted without a TPM: a copy of the storage includes its key")
      }
      return CheckResult(verdict: .good, subject: subject, text: "systemd credential \(path), encrypted with a TPM")
    case .file(let path):
      return CheckResult(
        verdict: .note, subject: subject,
        text: "file \(path): a copy of the storage includes it. A systemd credential sealed to a TPM is stronger")
    }
  }

  /// - Parameter count: how many bytes at most.
  /// - Returns: nil, with `errno`, if the file cannot be read.
  static func beginning(of path: String, count most: Int) -> String? {
    let file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)
    guard file >= 0 else { return nil }
    defer { close(file) }
    var bytes = [UInt8](repeating: 0, count: most)
    let count = read(file, &bytes, bytes.count)
    return count < 0 ? nil : String(decoding: bytes.prefix(count), as: UTF8.self)
  }
}
