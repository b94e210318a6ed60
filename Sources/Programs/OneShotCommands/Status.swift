// SPDX-License-Identifier: Apache-2.0
import ApprovalTokenCommands
import ControlProtocol
import MobileAuth
import TokenDaemon
import Vault

extension Status: OneShotCommand {
  package func perform() async throws {
    try await reporting(json) { try show(try fromService() ?? withoutService()) }
  }

  /// What is known without a running service. The vault may be one that only the service can open.
  /// - Throws: also if the service that is installed here, and may run, uses another directory.
  func withoutService() throws -> ServiceStatus {
    try state.requireServiceChoice()
    var status: ServiceStatus
    do {
      let accounts = try state.openVault(creating: false).accountSummaries()
      status = ServiceStatus(
        running: false, accounts: accounts.count, mustEnroll: accounts.filter { $0.stage == .mustEnrollAgain }.count)
    } catch {
      guard let failure = CommandError(explaining: error) else { throw error }
      status = ServiceStatus(accountsUnknown: failure.description)
    }
    status.remedy = InstalledService.start(of: state.directory)
    return status
  }
}
