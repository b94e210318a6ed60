import ArgumentParser
import MobileAuth
import ReferenceAdapter
import Vault

struct Remove: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Remove one account from this token, and tell its server.",
    discussion: """
      The account's keys are destroyed here whether or not the server can be told; if it cannot, that is said and the \
      portal still lists the device. Other accounts stay as they are.
      """)

  @Argument(help: "Account, as `approval-token accounts` lists it.")
  var account: String

  @Option(help: "PEM file with more certificate authorities, for servers without a pin.", completion: .file())
  var authorities: String?

  @OptionGroup var state: StateOption
  @OptionGroup var json: JSONOption

  func run() async throws {
    try await reporting {
      let vault = try state.openVault(creating: false)
      guard let record = try vault.accounts().first(where: { $0.id.text == account }) else {
        throw CommandFailure(.usage, "no account \"\(account)\"; `approval-token accounts` lists them")
      }
      let timekeeper = SystemTimekeeper()
      let told = await tellServer(of: record, vault, timekeeper)
      let untold =
        OATHAccounts.holds(record) ? "nobody else was told" : "here only; the token server still lists it (10003)"
      let detail = told ? "the token server knows" : untold
      try vault.wipe(
        ifThere: record.id,
        AuditEntry(
          .removed, account: record.id, detail: detail, wallClockMilliseconds: timekeeper.wallClockMilliseconds))
      pokeService(state)
      json.print(RemovalFacts(removed: record.id.text, serverTold: told)) { "removed \($0.removed); \(detail)" }
    }
  }

  private func tellServer(of record: AccountRecord, _ vault: Vault, _ timekeeper: any Timekeeper) async -> Bool {
    do {
      guard let server = try vault.servers().first(where: { $0.id == record.server }) else { return false }
      if OATHAccounts.holds(record) { return false }
      guard server.kind == ReferenceTokenServer.kind else {
        say("push tokens are deleted at their server by its administrator: \(record.profile) at \(server.url)")
        return false
      }
      let adapters = Adapters(vault: vault, authorities: authorities, timekeeper: timekeeper)
      try await (try adapters.tokenServer(server) as? ReferenceTokenServer)?.deregister(record.id)
      return true
    } catch let fault as TokenServerFault where [9002, 9003].contains(fault.number) {
      // Believed or not, the account goes here in any case.
      return true
    } catch {
      say("the token server was not told: \(error)")
      return false
    }
  }
}
