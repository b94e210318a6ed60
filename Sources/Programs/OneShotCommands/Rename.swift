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
      let clock = SystemClock()
      try Backends(vault, clock: clock).requireUnlocked(try vault.account(AccountID(account)))
      try vault.rename(
        AccountID(account), to: AccountID(newName),
        AuditEntry(
          .renamed, account: AccountID(newName), detail: "was \(account)",
          wallClockMilliseconds: clock.wallClockMilliseconds))
      requestReload(state)
      json.print(Response(account: newName, former: account)) { "\($0.former) is now \($0.account)" }
    }
  }
}
