// SPDX-License-Identifier: Apache-2.0
import ArgumentParser
import MobileAuth
import ServerBackends
import Vault

struct Rename: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Rename an account on this token.",
    discussion: "The server is not notified, and old lines of the log keep the old name.")

  private struct Response: Encodable {
    var account: String
    var former: String
  }

  @Argument(help: "Account, as `approval-token accounts` lists it.")
  var account: String

  @Argument(help: ArgumentHelp("The new name: 1 to 64 bytes without blanks.", valueName: "name"))
  var newName: String

  @OptionGroup var state: StateOption
  @OptionGroup var json: JSONOption

  func validate() throws {
    guard isAccountName(newName) else { throw ValidationError("a name has 1 to 64 bytes without blanks") }
  }

  func run() async throws {
    try await reporting(json) {
      let vault = try state.openVault(creating: false)
      let clock = SystemClock()
      try Backends(vault, clock: clock).requireUnlocked(try vault.account(AccountID(account)))
      try vault.rename(
        AccountID(account), to: AccountID(newName),
        AuditEntry(
          .renamed, account: AccountID(newName), detail: "was \(account)",
          wallClockMilliseconds: clock.wallClockMilliseconds))
      requestReload(state)
      json.print(Response(account: newName, former: account)) { "\($0.former) is now \($0.account)" }
    }
  }
}
