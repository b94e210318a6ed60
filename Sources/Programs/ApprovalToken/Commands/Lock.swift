// SPDX-License-Identifier: Apache-2.0
import ArgumentParser
import MobileAuth
import ServerBackends
import Vault

struct Lock: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Lock an account at this token until it is unlocked.",
    discussion: """
      While locked, requests are neither approved nor denied, no one-time password is shown, and name and mailbox \
      cannot be changed. Push messages are still received and stored; their requests are shown after the account is \
      unlocked. For accounts of PingAM, with one of the policies that AM attached to the account, and for accounts \
      with only one-time passwords. The server is not notified.
      """)

  @Argument(help: "Account, as `approval-token accounts` lists it.")
  var account: String

  @Option(help: ArgumentHelp("Policy to lock it with; an account of PingAM needs one.", valueName: "name"))
  var policy: String?

  @OptionGroup var state: StateOption
  @OptionGroup var json: JSONOption

  func run() async throws {
    try await reporting(json) {
      let backends = Backends(try state.openVault(creating: false))
      let locked = try backends.lockManually(account, with: policy)
      requestReload(state)
      json.print(LockResponse(account: account, locked: try backends.lock(of: locked)?.description), text: \.text)
    }
  }
}

struct Unlock: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Unlock an account that was locked with `lock`.",
    discussion: """
      A policy of AM that does not hold on this device keeps the account locked: it is unlocked automatically when the \
      policy holds.
      """)

  @Argument(help: "Account, as `approval-token accounts` lists it.")
  var account: String

  @OptionGroup var state: StateOption
  @OptionGroup var json: JSONOption

  func run() async throws {
    try await reporting(json) {
      let backends = Backends(try state.openVault(creating: false))
      let unlocked = try backends.unlockManually(account)
      requestReload(state)
      json.print(LockResponse(account: account, locked: try backends.lock(of: unlocked)?.description), text: \.text)
    }
  }
}

private struct LockResponse: Encodable {
  var account: String
  /// Why the account is locked; nil if it is not.
  var locked: String?

  var text: String { "\(account) is \(locked ?? "unlocked")" }
}
