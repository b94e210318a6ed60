// SPDX-License-Identifier: Apache-2.0
import ApprovalTokenCommands
import ControlProtocol
import MobileAuth
import ServerBackends
import TokenDaemon
import Vault

extension OneTimePasswordCommand: OneShotCommand {
  package func perform() async throws {
    try await reporting(json) {
      let environment = TokenEnvironment.system()
      show(try fromService() ?? fromVault(in: environment), on: environment.clock)
    }
  }

  private func fromVault(in environment: TokenEnvironment) throws -> CodeResponse {
    let vault = try state.openVault(creating: false)
    let account = try Backends(vault, in: environment).operations.accountWithOneTimePasswords(account)
    let result = try vault.nextOneTimePassword(of: account.id, in: environment, notBefore: releaseTime)
    return try CodeResponse(result, of: account.id)
  }
}
