// SPDX-License-Identifier: Apache-2.0
package import ArgumentParser

package struct Remove: DaemonCommand {
  package static let configuration = CommandConfiguration(
    commandName: "remove", abstract: "Remove one account from this token, and notify its server.",
    discussion: """
      The account's keys are destroyed here even if the server cannot be notified; in that case the command says so \
      and the portal still lists the device. Other accounts are not changed.
      """)

  @Argument(help: "Account, as `approval-token accounts` lists it.")
  package var account: String

  @Option(help: "PEM file with additional certificate authorities, for servers without a pin.", completion: .file())
  package var authorities: String?

  @OptionGroup package var state: StateOption
  @OptionGroup package var json: JSONOption

  package init() {}
}
