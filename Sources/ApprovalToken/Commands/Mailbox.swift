import ArgumentParser
import MobileAuth
import PingAMAdapter
import Vault

struct Mailbox: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Show where PingAM's messages for an account are to be brought, or have them brought elsewhere.",
    discussion: """
      It is what AM was told at registration as the device's id: 128 random bits, unless it was set. AM 8.0.1 and later \
      can be told of another; the running service does that, and until AM has taken it the old one is the right one. At \
      a broker it is a topic, so that another may not begin with $ nor have + or # in it, and must be no other account's.
      """)

  private struct Facts: Encodable {
    var account: String
    var mailbox: String
    /// AM has not taken it yet.
    var wanted: String?
  }

  @Argument(help: "Account, as `approval-token accounts` lists it.")
  var account: String

  @Option(name: .customLong("set"), help: ArgumentHelp("Where they are to be brought from now on.", valueName: "id"))
  var wanted: String?

  @OptionGroup var state: StateOption
  @OptionGroup var json: JSONOption

  func validate() throws {
    guard let wanted else { return }
    if let rule = PingAM.rule(brokenByMailbox: wanted) { throw ValidationError("--set takes \(rule)") }
  }

  func run() async throws {
    try await reporting {
      let vault = try state.openVault(creating: false)
      guard var record = try vault.accounts(atServersOf: PingAM.kind).first(where: { $0.id.text == account }),
        let mailbox = try PingAM.mailbox(of: record)
      else { throw CommandFailure(.usage, "no account \"\(account)\" of PingAM; see `approval-token accounts`") }
      if let wanted {
        try vault.demandUnlocked(record, SystemTimekeeper())
        try PingAM.check(mailbox: wanted, for: record.id, in: vault)
        let kept = try vault.update(record.id) { try PingAM.wanting(mailbox: wanted, $0) }
        guard let kept else { throw CustodyFault.unknown("account \(record.id)") }
        record = kept
        pokeService(state)
      }
      json.print(Facts(account: account, mailbox: mailbox, wanted: try PingAM.wantedMailbox(of: record))) { facts in
        facts.mailbox + (facts.wanted.map { "\n\($0) as soon as AM has taken it" } ?? "")
      }
    }
  }
}
