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
      let backends = Backends(vault, authorities: authorities, in: environment)
      let record = try backends.operations.account(account)
      let notification = await notifyServer(of: record, backends)
      let detail = notification.rawValue
      try vault.wipe(ifThere: record.id, environment.auditEntry(.removed, account: record.id, detail: detail))
      requestReload(state)
      json.print(RemovalResponse(removed: record.id.text, serverNotified: notification == .confirmed)) {
        "removed \($0.removed); \(detail)"
      }
    }
  }

  private enum Notification: String {
    case confirmed = "the token server confirmed it"
    case missing = "on this token only; the token server still lists it"
    case withoutServer = "it has no server to notify"
  }

  private func notifyServer(of record: AccountRecord, _ backends: Backends) async -> Notification {
    do {
      guard let server = try backends.vault.servers().first(where: { $0.id == record.server }) else { return .missing }
      guard let client = try backends.client(for: server) else { return .withoutServer }
      guard let client = client as? any Deregistration else {
        say("the server's administrator must delete the push token there: \(record.profile) at \(server.url)")
        return .missing
      }
      try await client.deregister(record.id)
      return .confirmed
    } catch let fault as TokenServerError where [9002, 9003].contains(fault.number) {
      // The server has removed the account already. Signed or not, that is no reason to keep it here.
      return .confirmed
    } catch {
      say("the token server was not notified: \(explanation(of: error))")
      return .missing
    }
  }
}
