import ArgumentParser
import MobileAuth
import PingAMAdapter
import Vault

struct History: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "List the push messages that were brought here, and how each ended, newest first.",
    discussion: """
      Only PingAM's are kept, the last \(ShelfLimits.perAccount) of each account and \(ShelfLimits.inAll) in all; \
      `log` has the requests of all token servers. States: pending, approved, denied, expired, failed (ended without \
      an answer), unknown (nobody will say whether the answer counted). Whoever logs in has a hand in the texts. Reads \
      the vault; the service may run or not.
      """)

  private struct Line: Encodable {
    var received: String
    var account: String
    /// Nil, as the texts are, if its signature can no longer be checked.
    var type: String?
    var message: String?
    var context: String?
    var state: String
    var transaction: String

    init(_ facts: MessageFacts) {
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
        $0.forPeople(atMost: 1000)
      }
      return (words + (context.map { ["login from: \($0.forPeople(atMost: 1000))"] } ?? [])).joined(separator: "  ")
    }
  }

  @Argument(help: "Account of PingAM, as `approval-token accounts` lists it; all of them without.")
  var account: String?

  @OptionGroup var state: StateOption
  @OptionGroup var json: JSONOption

  func run() async throws {
    try await reporting {
      let facts = try kept(in: state.openVault(creating: false))
      json.print(facts.map { Line($0) }) { lines in
        lines.isEmpty ? "no message is kept" : lines.map(\.text).joined(separator: "\n")
      }
    }
  }

  private func kept(in vault: Vault) throws -> [MessageFacts] {
    let records = try vault.accounts(atServersOf: PingAM.kind).filter { account == nil || $0.id.text == account }
    if let account, records.isEmpty {
      throw CommandFailure(.usage, "no account \"\(account)\" of PingAM; see `approval-token accounts`")
    }
    let now = SystemTimekeeper().wallClockMilliseconds
    var facts: [MessageFacts] = []
    for record in records {
      for message in try vault.messages(of: record.id) {
        facts.append(try PingAM.facts(of: message, for: record, now: now))
      }
    }
    return facts.sorted { $0.receivedAtMilliseconds > $1.receivedAtMilliseconds }
  }
}
