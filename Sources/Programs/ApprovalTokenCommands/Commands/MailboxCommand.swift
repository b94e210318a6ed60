// SPDX-License-Identifier: Apache-2.0
package import ArgumentParser

package struct MailboxCommand: DaemonCommand {
  package static let configuration = CommandConfiguration(
    commandName: "mailbox", abstract: "Show or change the push topic where PingAM delivers messages for an account.",
    discussion: """
      The topic was registered at AM as the device's id: 128 random bits, unless it was set. In AM 8.0.1 and later it \
      can be changed; the running service does that, and the old topic stays valid until AM confirms the new one. At \
      an MQTT broker a topic must not begin with $ or contain + or #. It must not be used by another account.
      """)

  @Argument(help: "Account, as `approval-token accounts` lists it.")
  package var account: String

  @Option(name: .customLong("set"), help: ArgumentHelp("The new topic.", valueName: "id"))
  package var wanted: String?

  @OptionGroup package var state: StateOption
  @OptionGroup package var json: JSONOption

  package init() {}

  package func validate() throws {
    guard let wanted else { return }
    if let rule = KindsOfServers.rules?.rule(brokenByMailbox: wanted) { throw ValidationError("--set takes \(rule)") }
  }
}
