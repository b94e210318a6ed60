// SPDX-License-Identifier: Apache-2.0
package import ArgumentParser
import CLinux
package import ControlProtocol
package import MobileAuth
import Secrets

package struct OneTimePasswordCommand: DaemonCommand {
  package static let configuration = CommandConfiguration(
    commandName: "otp", abstract: "Show the one-time password of an account.",
    discussion: """
      For accounts enrolled with otpauth://totp/…, otpauth://hotp/… or mfauth://…. Only the code goes to standard \
      output. A counter-based code counts as used once it is shown. A PIN chosen with --ask-pin is typed \
      on the token first.
      """)

  @Argument(help: "Account. Optional if only one has one-time passwords.")
  package var account: String?
  @OptionGroup package var state: StateOption
  @OptionGroup package var json: JSONOption

  package init() {}

  package func run() throws { try run(on: SystemClock()) }

  /// - Parameter clock: its wall clock says for how long the code is still valid.
  func run(on clock: any TokenClock) throws {
    try reporting(json) {
      protectMemory()
      guard let code = try fromService() else { try OtherProgram.daemon.start() }
      show(code, on: clock)
    }
  }

  /// Asks the service, which may have a device secret that only systemd can read, and the keypad for a PIN.
  /// - Returns: nil if no service is running.
  package func fromService() throws -> CodeResponse? {
    do {
      return try ControlClient(path: state.controlSocket).call(
        .oneTimePassword(account: account), CodeResponse.self, progress: showProgress)
    } catch let failure as CommandError where failure.isServiceMissing { return nil }
  }

  /// Prints the code; on standard error, for how long it is valid.
  package func show(_ code: CodeResponse, on clock: any TokenClock) {
    json.print(code, text: \.code)
    guard !json.isWanted else { return }
    if let counter = code.counter { say("counter \(counter)") }
    if let until = code.validUntil {
      if approval_linux_clock_is_synchronized() == 0 {
        say("this board's clock is not synchronized: if it is wrong, the code is wrong")
      }
      say("valid for \(max(0, until - clock.wallClockMilliseconds / 1000)) s")
    }
  }
}
