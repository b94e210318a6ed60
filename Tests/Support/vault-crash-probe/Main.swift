// SPDX-License-Identifier: Apache-2.0
import Glibc
import MobileAuth
import Vault
import VaultModel

/// Works on a vault until it is done or killed, and says so after each operation that returned: what a test of
/// crashes or of several processes needs on the other side.
///
///     vault-crash-probe <directory> operations <seed> <first> <count>
///     vault-crash-probe <directory> record <name> <count>
@main
enum Probe {
  static func main() throws {
    let arguments = CommandLine.arguments
    // A test waits for reports, or for the end of this process, without a time limit of its own.
    alarm(240)
    let secret = try DeviceSecret.load(stateDirectory: arguments[1], credentialsDirectory: nil)
    let vault = try untilUnlocked { try Vault.open(directory: arguments[1], deviceSecret: secret) }
    switch arguments[2] {
    case "operations":
      let first = Int(arguments[4])!
      for number in first..<first + Int(arguments[5])! {
        do { try Operation(number: number, seed: UInt64(arguments[3])!).apply(to: vault) } catch {
          // An account or server that is not there, as the model knows too.
          switch error {
          case .notFound, .conflict: break
          default: throw error
          }
        }
        report()
      }
    case "record":
      for number in 1...Int(arguments[4])! {
        let entry = AuditEntry(.opened, detail: "\(arguments[3]) \(number)", wallClockMilliseconds: 0)
        try untilUnlocked { try vault.record(entry) }
        report()
      }
    default: exit(64)
    }
  }

  /// One byte on standard output, unbuffered.
  private static func report() {
    var byte: UInt8 = 1
    guard write(1, &byte, 1) == 1 else { exit(74) }
  }
}
