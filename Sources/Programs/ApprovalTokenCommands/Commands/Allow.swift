// SPDX-License-Identifier: Apache-2.0
import ArgumentParser
import ControlProtocol

struct Allow: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "allow",
    abstract: "Let an account call a resource server, confirmed by a very long hold of the button.",
    discussion: """
      `approval-token call` sends the access token of the logged-in user only to origins on this list. Make sure that you \
      started this command yourself before you hold the button. With --remove, no hold is needed. `accounts --json` \
      prints the list.
      """)

  @Argument(help: "Account, as `approval-token accounts` lists it.")
  var account: String
  @Argument(help: "https://HOST or https://HOST:PORT.")
  var origin: String
  @Flag(help: "Remove the origin from the list.")
  var remove = false
  @OptionGroup var state: StateOption
  @OptionGroup var json: JSONOption

  func run() throws {
    let request: ControlRequest =
      remove ? .disallow(account: account, origin: origin) : .allow(account: account, origin: origin)
    try performControlCall(request, state, json) { (response: OriginsResponse) in
      response.allowedOrigins.isEmpty
        ? "\(response.account) may call no resource server"
        : "\(response.account) may call \(response.allowedOrigins.joined(separator: ", "))"
    }
  }
}
