// SPDX-License-Identifier: Apache-2.0
import ArgumentParser
import ControlProtocol

/// Commands that the running service performs, with input at the panel.
struct LogIn: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "login", abstract: "Log in to an account with the PIN or another authenticator, typed on the token.",
    discussion: """
      Uses the preferred authenticator unless another one is named. An existing session is logged out first. The running service keeps the session in memory. It ends when the \
      token server says so, usually after 15 minutes.
      """)

  @Argument(help: "Account. Optional if there is only one.")
  var account: String?
  @Option(help: ArgumentHelp("Authenticator, as `approval-token authenticators` lists it.", valueName: "identifier"))
  var authenticator: String?
  @OptionGroup var state: StateOption
  @OptionGroup var json: JSONOption

  func run() throws {
    try performControlCall(.logIn(account: account, authenticator: authenticator), state, json) {
      (response: SessionResponse) in
      "logged in as \(response.account ?? "?"), for \(response.secondsLeft ?? 0) s"
    }
  }
}

struct LogOut: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "logout", abstract: "Log out the logged-in account.")

  @OptionGroup var state: StateOption
  @OptionGroup var json: JSONOption

  func run() throws {
    try performControlCall(.logOut, state, json) { (response: SessionResponse) in
      switch response.serverNotified {
      case nil: "no account was logged in"
      case true?: "logged out"
      case false?: "logged out on this token; the token server could not be notified and ends the session at its expiry"
      }
    }
  }
}

struct PINCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "pin", abstract: "Change an account's PIN.", subcommands: [Change.self])

  struct Change: ParsableCommand {
    static let configuration = CommandConfiguration(
      commandName: "change",
      abstract: "Change the PIN: the present one, then the new one twice, all typed on the token.",
      discussion: """
        Logs in if necessary. After a power loss or an outage during the change, the token server knows which of the \
        two PINs is valid, and the token asks it. An account of PingAM, privacyIDEA or eduMFA that has no PIN yet \
        gets its first one.
        """)

    @Argument(help: "Account. Optional if there is only one.")
    var account: String?
    @OptionGroup var state: StateOption
    @OptionGroup var json: JSONOption

    func run() throws {
      try performControlCall(.changePIN(account: account), state, json) {
        (response: SessionResponse) in
        "the PIN of \(response.account ?? "?") was changed"
      }
    }
  }
}

struct Forget: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "forget",
    abstract: "Remove an account whose PIN is forgotten, confirmed by a very long hold of the button.",
    discussion: """
      A forgotten PIN cannot be recovered, and each wrong PIN uses up an attempt. This removes the account here and at \
      the token server. The board's profile says how long to hold the button; the default is 6 seconds. A new \
      activation code enrolls it again, with a new PIN. Other accounts are not changed.
      """)

  @Argument(help: "Account, as `approval-token accounts` lists it.")
  var account: String
  @OptionGroup var state: StateOption
  @OptionGroup var json: JSONOption

  func run() throws {
    try performControlCall(.forget(account: account), state, json) {
      (response: RemovalResponse) in
      "removed \(response.removed)"
        + (response.serverNotified
          ? "" : "; the token server was not notified: its administrator can delete the device")
    }
  }
}

/// - Parameter words: makes the text output from the result.
func performControlCall<Response: Codable>(
  _ request: ControlRequest, _ state: StateOption, _ json: JSONOption, words: (Response) -> String
) throws {
  try reporting(json) {
    json.print(
      try ControlClient(path: state.controlSocket).call(request, Response.self, progress: showProgress), text: words)
  }
}
