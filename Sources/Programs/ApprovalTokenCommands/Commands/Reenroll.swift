// SPDX-License-Identifier: Apache-2.0
import ArgumentParser
import ControlProtocol

struct Reenroll: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "reenroll",
    abstract: "Enroll an account again with its PIN, after its token server has removed its keys.",
    discussion: """
      No activation code is needed. Make sure that you started this command yourself before you type the PIN. An account \
      without a PIN, or whose user was removed, needs `enroll` with a new code.
      """)

  @Argument(help: "Account, as `approval-token accounts` lists it.")
  var account: String
  @OptionGroup var state: StateOption
  @OptionGroup var json: JSONOption

  func run() throws {
    try performControlCall(.enrollAgain(account: account), state, json) { (response: AccountResponse) in
      "enrolled \(response.account) again at \(response.server)"
    }
  }
}
