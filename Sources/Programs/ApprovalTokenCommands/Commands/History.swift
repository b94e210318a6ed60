// SPDX-License-Identifier: Apache-2.0
package import ArgumentParser
import MobileAuth

package struct History: DaemonCommand {
  package static let configuration = CommandConfiguration(
    commandName: "history", abstract: "List the received push messages of PingAM and their outcomes, newest first.",
    discussion: """
      Only messages of PingAM are stored: the last \(PushMessageLimits.perAccount) of each account, \(PushMessageLimits.total) in \
      total; `log` shows the requests of all token servers. States: pending, approved, denied, expired, failed (ended \
      without an answer), unknown (AM does not report whether the answer counted). The user can \
      influence the texts. Reads the vault; works with and without a running service.
      """)

  @Argument(help: "Account of PingAM, as `approval-token accounts` lists it. Default: all of them.")
  package var account: String?

  @OptionGroup package var state: StateOption
  @OptionGroup package var json: JSONOption

  package init() {}
}
