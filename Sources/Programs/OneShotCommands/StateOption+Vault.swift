// SPDX-License-Identifier: Apache-2.0
import ApprovalTokenCommands
import ControlProtocol
import Glibc
import MobileAuth
import RelayProtocol
import TokenDaemon
import Vault

extension StateOption {
  /// - Throws: if this user may not look into the directory.
  var hasVault: Bool {
    get throws {
      if access(directory + "/vault.sqlite3", F_OK) == 0 { return true }
      guard errno != EACCES else { throw CommandError.noPermission(for: directory) }
      return false
    }
  }

  /// Whether the vault has no bytes.
  var isVaultEmpty: Bool {
    var status = stat()
    return stat(directory + "/vault.sqlite3", &status) == 0 && status.st_size == 0
  }

  /// - Throws: if there is no vault.
  func requireVault() throws {
    guard try !hasVault else { return }
    try requireServiceChoice()
    throw CommandError(
      .badData, "no token state in \(directory): run `approval-token enroll` first, or choose another --state")
  }

  /// - Throws: if there is no vault in the default directory, which is not that of the service that is installed here.
  func requireServiceChoice() throws(CommandError) {
    try requireChoice("give this command --state \(InstalledService.stateDirectory) (docs/usage.md, \"As a service\")")
  }

  /// Creates the directory if it is missing, and checks it. Above the default directory, missing ones are created, too.
  func prepareDirectory() throws(StateStoreError) {
    try StateDirectory.prepare(directory, makingParents: isDefault)
  }

  func deviceSecret() throws -> DeviceSecret {
    try DeviceSecret.load(stateDirectory: directory, credentialsDirectory: environment("CREDENTIALS_DIRECTORY"))
  }

  /// - Parameters:
  ///   - creating: whether a missing directory is created, with a device secret. An empty vault, which an interrupted
  ///     first start leaves, too, becomes a new one; it is an error otherwise.
  ///   - reservesLog: as for `Vault.open`.
  ///   - readOnly: whether all writes are rejected.
  ///   - trialFile: exists as long as this system is on trial after an update of the image; in memory, made by root.
  func openVault(
    creating: Bool, reservesLog: Bool = false, readOnly: Bool = false, trialFile: String = "/run/approval-token-trial"
  ) throws -> Vault {
    if !creating {
      try requireVault()
      // Opening an empty file would make it a new vault.
      if isVaultEmpty { throw StateStoreError.corrupt(.emptyDatabase(directory + "/vault.sqlite3")) }
    }
    guard try !FactoryReset(directory: directory).hasBegun else {
      throw CommandError(
        .unavailable, "a factory reset of \(directory) has begun: start the service, which finishes it")
    }
    if creating { try prepareDirectory() }
    return try Vault.open(
      directory: directory, deviceSecret: deviceSecret(), upgrade: Backends.upgraded, reservesLog: reservesLog,
      readOnly: readOnly, onTrial: access(trialFile, F_OK) == 0)
  }
}

/// Makes a running service read the accounts again, after a change. Does nothing if none is running, and says so if it
/// does not answer.
func requestReload(_ state: StateOption) {
  do {
    _ = try ControlClient(path: state.controlSocket).call(.reload, Done.self, within: ControlClient.patience)
  } catch {
    guard (error as? CommandError)?.isServiceMissing != true else { return }
    say("\(explanation(of: error)). The change is stored, but the service may not know it: restart it")
  }
}

/// How a command that has opened the vault reaches servers: as the running service does, so that a server cannot attack
/// a process with keys where the service keeps the two apart. Without a service, from this process.
/// - Parameter service: what `serviceStatus` returned.
/// - Throws: its error, if a service runs, but does not say how it reaches servers.
func networkAccess(beside service: Result<ServiceStatus, any Error>) throws -> NetworkAccess {
  do {
    return try service.get().networkSocket.map { .through(Relay(path: $0, patience: Relay.commandPatience)) }
      ?? .ofThisProcess
  } catch let error
    as CommandError where error.isServiceMissing
  { return .ofThisProcess }
}
