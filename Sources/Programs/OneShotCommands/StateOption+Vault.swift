// SPDX-License-Identifier: Apache-2.0
import ApprovalTokenCommands
import ControlProtocol
import Glibc
import TokenDaemon
import Vault

extension StateOption {
  var hasVault: Bool { access(directory + "/vault.sqlite3", F_OK) == 0 }

  func deviceSecret() throws -> DeviceSecret {
    try DeviceSecret.load(stateDirectory: directory, credentialsDirectory: environment("CREDENTIALS_DIRECTORY"))
  }

  /// - Parameters:
  ///   - creating: whether a missing directory is created, with a device secret.
  ///   - readOnly: whether all writes are rejected.
  func openVault(creating: Bool, readOnly: Bool = false) throws -> Vault {
    if !creating, !hasVault {
      throw CommandError(
        .badData, "no token state in \(directory): run `approval-token enroll` first, or choose another --state")
    }
    return try Vault.open(
      directory: directory, deviceSecret: deviceSecret(), upgrade: Backends.upgraded, readOnly: readOnly)
  }
}

/// Makes a running service read the accounts again. Does nothing if none is running.
func requestReload(_ state: StateOption) {
  _ = try? ControlClient(path: state.controlSocket).call(.reload, Done.self)
}
