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
      try Backends(try state.openVault(creating: false)).operations.rename(account, to: newName)
      requestReload(state)
      json.print(Response(account: newName, former: account)) { "\($0.former) is now \($0.account)" }
    }
  }
}
