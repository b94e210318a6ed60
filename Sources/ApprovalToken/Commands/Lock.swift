import ArgumentParser
import MobileAuth
import PingAMAdapter
import Vault

struct Lock: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Lock an account at this token until it is unlocked.",
    discussion: """
      Nothing is accepted or denied for it, no one-time password is shown, and its name and mailbox stay as they are. \
      Messages that are brought are kept; nobody is asked about their requests before the account is unlocked. For \
      accounts of PingAM, each with one of the policies that AM gave it, and for those that only make one-time \
      passwords. Nobody else is told.
      """)

  @Argument(help: "Account, as `approval-token accounts` lists it.")
  var account: String

  @Option(help: ArgumentHelp("Policy to lock it with; an account of PingAM needs one.", valueName: "name"))
  var policy: String?

  @OptionGroup var state: StateOption
  @OptionGroup var json: JSONOption

  func run() async throws {
    try await reporting {
      let vault = try state.openVault(creating: false)
      let clock = SystemTimekeeper()
      let locked = try vault.lockByHand(account, with: policy, clock)
      pokeService(state)
      json.print(LockFacts(account: account, locked: try vault.lock(of: locked, clock)?.description), text: \.text)
    }
  }
}

struct Unlock: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Unlock an account that was locked by hand.",
    discussion: """
      A policy of AM that does not hold on this device goes on locking the account: it opens by itself once the policy \
      holds.
      """)

  @Argument(help: "Account, as `approval-token accounts` lists it.")
  var account: String

  @OptionGroup var state: StateOption
  @OptionGroup var json: JSONOption

  func run() async throws {
    try await reporting {
      let vault = try state.openVault(creating: false)
      let clock = SystemTimekeeper()
      let unlocked = try vault.unlockByHand(account, clock)
      pokeService(state)
      json.print(LockFacts(account: account, locked: try vault.lock(of: unlocked, clock)?.description), text: \.text)
    }
  }
}

private struct LockFacts: Encodable {
  var account: String
  /// Why it cannot be used; nil if it can.
  var locked: String?

  var text: String { "\(account) is \(locked ?? "unlocked")" }
}
