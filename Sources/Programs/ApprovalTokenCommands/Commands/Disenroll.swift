// SPDX-License-Identifier: Apache-2.0
import ArgumentParser
import ControlProtocol

struct Disenroll: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "disenroll",
    abstract: "Give up the keys of an account, which then approves no requests, and keep its PIN.",
    discussion: """
      The token server is notified first, and must be reachable. The account keeps its name, its PIN and its \
      authenticators: `approval-token reenroll` enrolls it again with the PIN. Without a PIN it needs a new activation \
      code. `approval-token remove` removes the account as a whole.
      """)

  @Argument(help: "Account, as `approval-token accounts` lists it.")
  var account: String
  @Flag(help: "Give up push alone, and keep the keys.")
  var pushOnly = false
  @OptionGroup var state: StateOption
  @OptionGroup var json: JSONOption

  func run() throws {
    try performControlCall(.disenroll(account: account, pushOnly: pushOnly), state, json) {
      (response: AccountResponse) in
      "disenrolled \(response.account) at \(response.server)"
    }
  }
}
