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
      let vault = try state.openVault(creating: false)
      let backends = Backends(vault)
      let found = try backends.accounts { $0 as? any MailboxAddressing }.first { $0.account.id.text == account }
      guard case (var record, let backend)? = found, let mailbox = record.delivery?.mailbox
      else {
        let kinds = Backends.names { $0 is any MailboxAddressing.Type }
        throw CommandError(.usage, "no account \"\(account)\" of \(kinds); see `approval-token accounts`")
      }
      if let wanted {
        try backends.requireUnlocked(record)
        try backend.check(mailbox: wanted, for: record.id)
        let kept = try vault.update(record.id) { try $0.requesting(mailbox: wanted) }
        guard let kept else { throw StateStoreError.notFound(.account(record.id)) }
        record = kept
        requestReload(state)
      }
      json.print(Response(account: account, mailbox: mailbox, wanted: record.delivery?.wanted)) {
        response in
        response.mailbox + (response.wanted.map { "\n\($0) as soon as the server has confirmed it" } ?? "")
      }
    }
  }
}
