// SPDX-License-Identifier: Apache-2.0
package import ArgumentParser
import MobileAuth

package struct Rename: DaemonCommand {
  package static let configuration = CommandConfiguration(
    commandName: "rename", abstract: "Rename an account on this token.",
    discussion: "The server is not notified, and old lines of the log keep the old name.")

  @Argument(help: "Account, as `approval-token accounts` lists it.")
  package var account: String

  @Argument(help: ArgumentHelp("The new name: 1 to 64 bytes without blanks.", valueName: "name"))
  package var newName: String

  @OptionGroup package var state: StateOption
  @OptionGroup package var json: JSONOption

  package init() {}

  package func validate() throws {
    guard isAccountName(newName) else { throw ValidationError("a name has 1 to 64 bytes without blanks") }
  }
}
