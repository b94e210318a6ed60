// SPDX-License-Identifier: Apache-2.0
import ArgumentParser
import ControlProtocol

struct FactoryResetCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "factory-reset",
    abstract: "Remove all accounts, keys and the audit chain, confirmed by a very long hold of the button.",
    discussion: """
      For a token that gets another owner, or is given away. The token servers are notified; those that cannot be reached \
      within 30 seconds still list the device, and their administrators must delete it. From the hold on, the reset is \
      finished in any case, also after a power loss. Then the service ends; its unit starts it again, as a new token.
      """)

  @OptionGroup var state: StateOption
  @OptionGroup var json: JSONOption

  func run() throws {
    try performControlCall(.factoryReset, state, json) { (response: FactoryResetResponse) in
      "removed all accounts"
        + (response.notNotified.isEmpty
          ? "" : "; still listed by their token servers: \(response.notNotified.joined(separator: ", "))")
    }
  }
}
