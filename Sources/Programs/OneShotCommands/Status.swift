// SPDX-License-Identifier: Apache-2.0
import ApprovalTokenCommands
import ControlProtocol
import MobileAuth
import Vault

extension Status: OneShotCommand {
  package func perform() async throws {
    try await reporting(json) { try show(try fromService() ?? fromVault()) }
  }

  /// What is known without a running service.
  private func fromVault() throws -> ServiceStatus {
    let accounts = try state.openVault(creating: false).accountSummaries()
    return ServiceStatus(
      running: false, accounts: accounts.count, mustEnroll: accounts.filter { $0.stage == .mustEnrollAgain }.count)
  }
}
