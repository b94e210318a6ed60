// SPDX-License-Identifier: Apache-2.0
package import ArgumentParser

package struct Doctor: DaemonCommand {
  package static let configuration = CommandConfiguration(
    commandName: "doctor", abstract: "Check state, secrets, clock, memory and servers for problems.",
    discussion: "Exit code 1 if a finding needs action.")

  @Option(help: "PEM file with additional certificate authorities, for servers without a pin.", completion: .file())
  package var authorities: String?

  @Flag(
    help: """
      Delete the times that token servers have reported. They are used while this board's clock is not set; a time \
      that is wrong prevents a connection to its server. Nothing else deletes or changes stored data.
      """)
  package var forgetServerTimes = false

  @OptionGroup package var state: StateOption
  @OptionGroup package var json: JSONOption

  package init() {}
}
