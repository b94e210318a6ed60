// SPDX-License-Identifier: Apache-2.0
import ApprovalTokenCommands
import MobileAuth
import ServerBackends
import TokenDaemon
import Vault

extension Lock: OneShotCommand {
  package func perform() async throws {
    try await reporting(json) {
      let operations = Backends(try state.openVault(creating: false)).operations
      let locked = try operations.lock(account, with: policy)
      requestReload(state)
      json.print(LockResponse(account: account, locked: try operations.lock(of: locked)?.description), text: \.text)
    }
  }
}

extension Unlock: OneShotCommand {
  package func perform() async throws {
    try await reporting(json) {
      let operations = Backends(try state.openVault(creating: false)).operations
      let unlocked = try operations.unlock(account)
      requestReload(state)
      json.print(LockResponse(account: account, locked: try operations.lock(of: unlocked)?.description), text: \.text)
    }
  }
}

private struct LockResponse: Encodable {
  var account: String
  /// Why the account is locked; nil if it is not.
  var locked: String?

  var text: String { "\(account) is \(locked ?? "unlocked")" }
}
