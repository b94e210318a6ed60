// SPDX-License-Identifier: Apache-2.0
import ApprovalTokenCommands
import MobileAuth
import ServerBackends
import TokenDaemon
import Vault

extension Rename: OneShotCommand {
  private struct Response: Encodable {
    var account: String
    var former: String
  }

  package func perform() async throws {
    try await reporting(json) {
      let vault = try state.openVault(creating: false)
      let environment = TokenEnvironment.system()
      try Backends(vault, in: environment).requireUnlocked(try vault.account(AccountID(account)))
      try vault.rename(
        AccountID(account), to: AccountID(newName),
        environment.auditEntry(.renamed, account: AccountID(newName), detail: "was \(account)"))
      requestReload(state)
      json.print(Response(account: newName, former: account)) { "\($0.former) is now \($0.account)" }
    }
  }
}
