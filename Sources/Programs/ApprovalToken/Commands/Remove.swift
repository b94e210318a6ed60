// SPDX-License-Identifier: Apache-2.0
import ArgumentParser
import MobileAuth
import ReferenceAdapter
import Vault

struct Remove: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Remove one account from this token, and notify its server.",
    discussion: """
      The account's keys are destroyed here even if the server cannot be notified; in that case the command says so \
      and the portal still lists the device. Other accounts are not changed.
      """)

  @Argument(help: "Account, as `approval-token accounts` lists it.")
  var account: String

  @Option(help: "PEM file with additional certificate authorities, for servers without a pin.", completion: .file())
  var authorities: String?

  @OptionGroup var state: StateOption
  @OptionGroup var json: JSONOption

  func run() async throws {
    try await reporting(json) {
      let vault = try state.openVault(creating: false)
      guard let record = try vault.accounts().first(where: { $0.id.text == account }) else {
        throw CommandError(.usage, "no account \"\(account)\"; `approval-token accounts` lists them")
      }
      let clock = SystemClock()
      let told = await notifyServer(of: record, vault, clock)
      let untold =
        OATHAccounts.holds(record)
        ? "it has no server to notify" : "on this token only; the token server still lists it"
      let detail = told ? "the token server confirmed it" : untold
      try vault.wipe(
        ifThere: record.id,
        AuditEntry(
          .removed, account: record.id, detail: detail, wallClockMilliseconds: clock.wallClockMilliseconds))
      requestReload(state)
      json.print(RemovalResponse(removed: record.id.text, serverNotified: told)) { "removed \($0.removed); \(detail)" }
    }
  }

  private func notifyServer(of record: AccountRecord, _ vault: Vault, _ clock: any TokenClock) async -> Bool {
    do {
      guard let server = try vault.servers().first(where: { $0.id == record.server }) else { return false }
      if OATHAccounts.holds(record) { return false }
      guard server.kind == ReferenceServerClient.kind else {
        say("the server's administrator must delete the push token there: \(record.profile) at \(server.url)")
        return false
      }
      let adapters = Adapters(vault: vault, authorities: authorities, clock: clock)
      try await (try adapters.tokenServer(server) as? ReferenceServerClient)?.deregister(record.id)
      return true
    } catch let fault as TokenServerError where [9002, 9003].contains(fault.number) {
      // The server has removed the account already. Signed or not, that is no reason to keep it here.
      return true
    } catch {
      say("the token server was not notified: \(error)")
      return false
    }
  }
}
