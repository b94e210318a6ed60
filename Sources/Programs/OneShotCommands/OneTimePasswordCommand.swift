// SPDX-License-Identifier: Apache-2.0
import ApprovalTokenCommands
import ControlProtocol
import MobileAuth
import Secrets
import TokenDaemon
import Vault

extension OneTimePasswordCommand: OneShotCommand {
  package func perform() async throws {
    try await reporting(json) {
      forbidMemoryDumps()
      overwriteFreedMemory()
      show(try fromService() ?? fromVault())
    }
  }

  private func fromVault() throws -> CodeResponse {
    let vault = try state.openVault(creating: false)
    let environment = TokenEnvironment.system()
    let account = try Backends(vault, in: environment).operations.accountWithOneTimePasswords(account)
    let verdict = try vault.nextOneTimePassword(of: account.id, in: environment, notBefore: releaseTime)
    return try CodeResponse(verdict, of: account.id)
  }
}
