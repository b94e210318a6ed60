// SPDX-License-Identifier: Apache-2.0
package import ArgumentParser

package struct ApprovalTokenCommand: ParsableCommand {
  package static let configuration = CommandConfiguration(
    commandName: "approval-token",
    abstract: "A physical approval token: approve logins and payments with a button on a small board.",
    discussion: """
      Enroll once with the URI from your portal, then keep `approval-token serve` running. When the \
      LED blinks blue, hold the button for a second to approve, press twice to deny, or hold it very long (the board's \
      profile says how long; usually six seconds) to deny and report that the request was not yours.

      Exit codes: 0 done, 1 a check found a problem, 64 wrong usage or an unknown name, 65 malformed input or no state, \
      69 not running, not reachable or not stored, 75 in use, 77 refused or no permission, 85 serve after a factory \
      reset: start it again.
      """,
    version: "0.1.0",
    subcommands: [
      Enroll.self, Reenroll.self, Disenroll.self, Serve.self, Device.self, Network.self, Status.self, Accounts.self,
      Pending.self,
      Watch.self, Events.self, Show.self, History.self,
      OneTimePasswordCommand.self,
      Push.self, MailboxCommand.self, Log.self, LogIn.self, LogOut.self, Authenticators.self, AuthenticatorCommand.self,
      Call.self, Allow.self,
      PINCommand.self, Forget.self, Lock.self, Unlock.self, Rename.self, Remove.self, FactoryResetCommand.self,
      Doctor.self, SelfTestCommand.self, BoardCommand.self,
      Simulate.self,
    ])

  package init() {}
}
