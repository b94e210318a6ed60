// SPDX-License-Identifier: Apache-2.0
import Cryptography
import Glibc
import MobileAuth
import PINProtection
import ReferenceProtocol
import Secrets
import Vault

@testable import ReferenceAdapter

/// `card-secrets STATE PIN`: what the PIN unwraps from the first account of a token's state directory, one name and one
/// hexadecimal value to a line. For tests that look for these bytes where they must not be.
@main enum Main {
  static func main() throws {
    let arguments = CommandLine.arguments
    guard arguments.count == 3 else { fatalError("usage: card-secrets STATE PIN") }
    let vault = try Vault.open(
      directory: arguments[1],
      deviceSecret: DeviceSecret.load(stateDirectory: arguments[1], credentialsDirectory: nil))
    guard let account = try vault.accounts().first, let server = try vault.servers().first,
      let wrapped = try AccountCredentials(account).pin?.current.wrapped,
      let client = try DeviceCredentials(server).clientID
    else { fatalError("no account with a PIN in \(arguments[1])") }
    let pin = PIN(digits: SecretBytes(copying: Array(arguments[2].utf8)))
    let token = bytes(try wrapped.unwrap(with: pin, binding: vault.pinBinding))
    // W stands at the end of the record.
    let key = zip(bytes(wrapped.encoded).suffix(32), token).map { $0 ^ $1 }
    let seed = bytes(
      HKDF.derive(
        SecretBytes(copying: token), salt: Array((client + account.profile).utf8), info: "approval-token/knowledge/v1"))
    for (name, value) in [("refresh-token", token), ("wrapping-key", key), ("knowledge-seed", seed)] {
      print(name, value.lowercaseHex)
    }
  }

  private static func bytes(_ secret: SecretBytes) -> [UInt8] { secret.withExposedSecret { Array($0) } }
}
