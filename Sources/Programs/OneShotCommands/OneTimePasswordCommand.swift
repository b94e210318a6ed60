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
    let clock = SystemClock()
    let account = try Backends(vault, clock: clock).accountWithOneTimePasswords(account)
    let verdict = try vault.nextOneTimePassword(of: account.id, clock: clock, notBefore: releaseTime)
    return try CodeResponse(verdict, of: account.id)
  }
}
