// SPDX-License-Identifier: Apache-2.0
import ArgumentParser
import CLinux
import MobileAuth
import Secrets
import Vault

struct OneTimePasswordCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "otp", abstract: "Show the one-time password of an account.",
    discussion: """
      For accounts enrolled with otpauth://totp/…, otpauth://hotp/… or mfauth://…. Only the code goes to standard \
      output. A counter-based code counts as used once it is shown. A PIN chosen with --ask-pin is typed \
      on the token first.
      """)

  @Argument(help: "Account. Optional if only one has one-time passwords.")
  var account: String?
  @OptionGroup var state: StateOption
  @OptionGroup var json: JSONOption

  func run() async throws {
    try await reporting(json) {
      forbidMemoryDumps()
      overwriteFreedMemory()
      let facts = try next()
      json.print(facts, text: \.code)
      guard !json.isWanted else { return }
      if let counter = facts.counter { say("counter \(counter)") }
      if let until = facts.validUntil {
        if approval_linux_clock_is_synchronized() == 0 {
          say("this board's clock is not synchronized: if it is wrong, the code is wrong")
        }
        say("valid for \(max(0, until - SystemClock().wallClockMilliseconds / 1000)) s")
      }
    }
  }

  /// Asks the service first: it may have a device secret that only systemd can read, and the keypad for a PIN.
  private func next() throws -> CodeResponse {
    do {
      return try ControlClient(path: state.controlSocket).callWithProgress(
        ControlCall(request: .oneTimePassword, account: account), CodeResponse.self)
    } catch {
      guard let failure = error as? CommandError, failure.isServiceMissing else { throw error }
    }
    let vault = try state.openVault(creating: false)
    let clock = SystemClock()
    let account = try Backends(vault, clock: clock).accountWithOneTimePasswords(account)
    let verdict = try vault.nextOneTimePassword(of: account.id, clock: clock, notBefore: releaseTime)
    return try CodeResponse(verdict, of: account.id)
  }
}
