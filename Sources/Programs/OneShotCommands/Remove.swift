// SPDX-License-Identifier: Apache-2.0
import ApprovalTokenCommands
import ControlProtocol
import MobileAuth
import ServerBackends
import TokenDaemon
import Vault

extension Remove: OneShotCommand {
  package func perform() async throws {
    try await reporting(json) {
      let vault = try state.openVault(creating: false)
      let environment = TokenEnvironment.system()
      if try vault.damagedAccounts().contains(AccountID(account)) {
        return try remove(damaged: AccountID(account), from: vault, in: environment)
      }
      let network = try networkAccess(beside: Result { try state.serviceStatus() })
      let backends = Backends(
        vault, authorities: authorities, in: environment, makeHTTPTransport: network.makeHTTPTransport)
      let record = try backends.operations.account(account)
      let notification = try await backends.operations.remove(record) { $0.summary }
      if let warning = notification.warning(about: record) { say(warning) }
      requestReload(state)
      json.print(RemovalResponse(removed: record.id.text, serverNotified: notification.isConfirmed)) {
        "removed \($0.removed); \(notification.summary)"
      }
    }
  }

  /// Its keys, with which the token server could be notified, cannot be read.
  private func remove(damaged account: AccountID, from vault: Vault, in environment: TokenEnvironment) throws {
    let detail = "its record, or that of its server, was damaged; the token server was not notified"
    try vault.wipe(damaged: account, environment.auditEntry(.removed, account: account, detail: detail))
    say("the token server was not notified: delete the account there, too")
    requestReload(state)
    json.print(RemovalResponse(removed: account.text, serverNotified: false)) { "removed \($0.removed); \(detail)" }
  }
}

extension RemovalNotification {
  fileprivate var summary: String {
    switch self {
    case .confirmed: "the token server confirmed it"
    case .unsupported, .failed: "on this token only; the token server still lists it"
    case .withoutServer: "it has no server to notify"
    }
  }
}
