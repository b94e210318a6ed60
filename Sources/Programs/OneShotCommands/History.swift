// SPDX-License-Identifier: Apache-2.0
import ApprovalTokenCommands
import ControlProtocol
import DisplayText
import MobileAuth
import ServerBackends
import TokenDaemon
import Vault

extension History: OneShotCommand {
  private struct Line: Encodable {
    var received: String
    var account: String
    /// Nil, as the texts are, if the message's signature can no longer be verified.
    var type: String?
    /// AM's name of the type.
    var pushType: String?
    var message: String?
    var context: String?
    var state: String
    var transaction: String

    enum CodingKeys: String, CodingKey {
      case received, account, type, message, context, state, transaction
      case pushType = "push_type"
    }

    init(_ summary: MessageSummary) {
      received = Log.text(milliseconds: summary.receivedAtMilliseconds)
      account = summary.account.text
      type = summary.type
      pushType = summary.pushType
      message = summary.message
      context = summary.context
      state = summary.state.rawValue
      transaction = summary.transaction.text
    }

    var text: String {
      let words = [received, transaction, account, state, type ?? "-", message ?? "-"].map {
        $0.sanitized(atMost: 1000)
      }
      return (words + (context.map { ["login from: \($0.sanitized(atMost: 1000))"] } ?? [])).joined(separator: "  ")
    }
  }

  package func perform() async throws {
    try await reporting(json) {
      let summaries = try Backends(try state.openVault(creating: false)).operations.history(of: account)
      json.print(summaries.map { Line($0) }) { lines in
        lines.isEmpty ? "no messages" : lines.map(\.text).joined(separator: "\n")
      }
    }
  }
}
