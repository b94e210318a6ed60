// SPDX-License-Identifier: Apache-2.0
import ArgumentParser
import MobileAuth
import ServerBackends
import Vault

struct History: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "List the received push messages of PingAM and their outcomes, newest first.",
    discussion: """
      Only messages of PingAM are stored: the last \(PushMessageLimits.perAccount) of each account, \(PushMessageLimits.total) in \
      total; `log` shows the requests of all token servers. States: pending, approved, denied, expired, failed (ended \
      without an answer), unknown (AM does not report whether the answer counted). The user can \
      influence the texts. Reads the vault; works with and without a running service.
      """)

  private struct Line: Encodable {
    var received: String
    var account: String
    /// Nil, as the texts are, if the message's signature can no longer be verified.
    var type: String?
    var message: String?
    var context: String?
    var state: String
    var transaction: String

    init(_ facts: MessageSummary) {
      received = Log.text(milliseconds: facts.receivedAtMilliseconds)
      account = facts.account.text
      type = facts.type
      message = facts.message
      context = facts.context
      state = facts.state.rawValue
      transaction = facts.transaction.text
    }

    var text: String {
      let words = [received, transaction, account, state, type ?? "-", message ?? "-"].map {
        $0.sanitized(atMost: 1000)
      }
      return (words + (context.map { ["login from: \($0.sanitized(atMost: 1000))"] } ?? [])).joined(separator: "  ")
    }
  }

  @Argument(help: "Account of PingAM, as `approval-token accounts` lists it. Default: all of them.")
  var account: String?

  @OptionGroup var state: StateOption
  @OptionGroup var json: JSONOption

  func run() async throws {
    try await reporting(json) {
      let facts = try kept(in: state.openVault(creating: false))
      json.print(facts.map { Line($0) }) { lines in
        lines.isEmpty ? "no messages" : lines.map(\.text).joined(separator: "\n")
      }
    }
  }

  private func kept(in vault: Vault) throws -> [MessageSummary] {
    let found = try Backends(vault).accounts { $0 as? any MessageHistory }
      .filter { account == nil || $0.account.id.text == account }
    if let account, found.isEmpty {
      throw CommandError(.usage, "no account \"\(account)\" of PingAM; see `approval-token accounts`")
    }
    let now = SystemClock().wallClockMilliseconds
    var facts: [MessageSummary] = []
    for (record, backend) in found {
      for message in try vault.messages(of: record.id) {
        facts.append(try backend.summary(of: message, for: record, now: now))
      }
    }
    return facts.sorted { $0.receivedAtMilliseconds > $1.receivedAtMilliseconds }
  }
}
