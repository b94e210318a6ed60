// SPDX-License-Identifier: Apache-2.0
import ApprovalTokenCommands
import ControlProtocol
import MobileAuth
import ServerBackends
import TokenDaemon
import Vault

extension MailboxCommand: OneShotCommand {
  private struct Response: Encodable {
    var account: String
    var mailbox: String
    /// The requested topic, until the server confirms it.
    var wanted: String?
  }

  package func perform() async throws {
    try await reporting(json) {
      let operations = Backends(try state.openVault(creating: false)).operations
      var delivery = try operations.deliveryAddress(of: account)
      if let wanted {
        delivery = try operations.request(mailbox: wanted, for: account)
        requestReload(state)
      }
      json.print(Response(account: account, mailbox: delivery.mailbox, wanted: delivery.wanted)) { response in
        response.mailbox + (response.wanted.map { "\n\($0) as soon as the server has confirmed it" } ?? "")
      }
    }
  }
}
