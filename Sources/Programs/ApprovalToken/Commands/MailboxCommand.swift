// SPDX-License-Identifier: Apache-2.0
import ArgumentParser
import MobileAuth
import ServerBackends
import Vault

struct MailboxCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "mailbox", abstract: "Show or change the push topic where PingAM delivers messages for an account.",
    discussion: """
      The topic was registered at AM as the device's id: 128 random bits, unless it was set. In AM 8.0.1 and later it \
      can be changed; the running service does that, and the old topic stays valid until AM confirms the new one. At \
      an MQTT broker a topic must not begin with $ or contain + or #. It must not be used by another account.
      """)

  private struct Response: Encodable {
    var account: String
    var mailbox: String
    /// The requested topic, until AM confirms it.
    var wanted: String?
  }

  @Argument(help: "Account, as `approval-token accounts` lists it.")
  var account: String

  @Option(name: .customLong("set"), help: ArgumentHelp("The new topic.", valueName: "id"))
  var wanted: String?

  @OptionGroup var state: StateOption
  @OptionGroup var json: JSONOption

  func validate() throws {
    guard let wanted else { return }
    if let rule = Backends.rule(brokenByMailbox: wanted) { throw ValidationError("--set takes \(rule)") }
  }

  func run() async throws {
    try await reporting(json) {
      let vault = try state.openVault(creating: false)
      let backends = Backends(vault)
      let found = try backends.accounts { $0 as? any MailboxAddressing }.first { $0.account.id.text == account }
      guard case (var record, let backend)? = found, let mailbox = record.delivery?.mailbox
      else { throw CommandError(.usage, "no account \"\(account)\" of PingAM; see `approval-token accounts`") }
      if let wanted {
        try backends.requireUnlocked(record)
        try backend.check(mailbox: wanted, for: record.id)
        let kept = try vault.update(record.id) { try $0.wanting(mailbox: wanted) }
        guard let kept else { throw StateStoreError.notFound(.account(record.id)) }
        record = kept
        requestReload(state)
      }
      json.print(Response(account: account, mailbox: mailbox, wanted: record.delivery?.wanted)) {
        facts in
        facts.mailbox + (facts.wanted.map { "\n\($0) as soon as AM has confirmed it" } ?? "")
      }
    }
  }
}
