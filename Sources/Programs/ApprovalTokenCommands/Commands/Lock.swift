// SPDX-License-Identifier: Apache-2.0
package import ArgumentParser

package struct Lock: DaemonCommand {
  package static let configuration = CommandConfiguration(
    commandName: "lock", abstract: "Lock an account at this token until it is unlocked.",
    discussion: """
      While locked, requests are neither approved nor denied, no one-time password is shown, and name and mailbox \
      cannot be changed. Push messages are still received and stored; their requests are shown after the account is \
      unlocked. For accounts of PingAM, with one of the policies that AM attached to the account, and for accounts \
      with only one-time passwords. The server is not notified.
      """)

  @Argument(help: "Account, as `approval-token accounts` lists it.")
  package var account: String

  @Option(help: ArgumentHelp("Policy to lock it with; an account of PingAM needs one.", valueName: "name"))
  package var policy: String?

  @OptionGroup package var state: StateOption
  @OptionGroup package var json: JSONOption

  package init() {}
}

package struct Unlock: DaemonCommand {
  package static let configuration = CommandConfiguration(
    commandName: "unlock", abstract: "Unlock an account that was locked with `lock`.",
    discussion: """
      A policy of AM that does not hold on this device keeps the account locked: it is unlocked automatically when the \
      policy holds.
      """)

  @Argument(help: "Account, as `approval-token accounts` lists it.")
  package var account: String

  @OptionGroup package var state: StateOption
  @OptionGroup package var json: JSONOption

  package init() {}
}
