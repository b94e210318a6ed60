// SPDX-License-Identifier: Apache-2.0
import ArgumentParser
import ControlProtocol

struct Show: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "show", abstract: "Show a pending request on the panel next.",
    discussion: """
      The panel changes when the token server has delivered the request and the user does not touch the button or the keypad. \
      The LED announces the change. The request stays on the panel until it ends or another one is chosen, with this \
      command or with a short press of the button.
      """)

  @Argument(help: "Transaction, as `approval-token pending` lists it.")
  var transaction: String
  @OptionGroup var state: StateOption
  @OptionGroup var json: JSONOption

  func run() throws {
    try reporting(json) {
      let done = try ControlClient(path: state.controlSocket).call(
        .show(transaction: transaction), Done.self, within: ControlClient.patience)
      json.print(done) { _ in "" }
    }
  }
}
