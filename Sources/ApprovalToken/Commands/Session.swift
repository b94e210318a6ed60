import ArgumentParser

/// Commands that end at the panel: the running service does them.
struct LogIn: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "login", abstract: "Log in to an account with the PIN, typed on the token.",
    discussion: """
      Whoever was logged in is logged out first. The session is kept in memory by the running service, and ends when the \
      token server says so, usually after 15 minutes.
      """)

  @Argument(help: "Account. May be left out if there is only one.")
  var account: String?
  @OptionGroup var state: StateOption
  @OptionGroup var json: JSONOption

  func run() async throws {
    try await haveServiceDo(ControlCall(request: .logIn, account: account), state, json) { (facts: SessionFacts) in
      "logged in as \(facts.account ?? "?"), for \(facts.secondsLeft ?? 0) s"
    }
  }
}

struct LogOut: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "logout", abstract: "End the session of whoever is logged in.")

  @OptionGroup var state: StateOption
  @OptionGroup var json: JSONOption

  func run() async throws {
    try await haveServiceDo(ControlCall(request: .logOut), state, json) { (facts: SessionFacts) in
      switch facts.serverTold {
      case nil: "nobody was logged in"
      case true?: "logged out"
      case false?: "logged out here; the token server could not be told (10009)"
      }
    }
  }
}

struct PINCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "pin", abstract: "Change an account's PIN.", subcommands: [Change.self])

  struct Change: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
      abstract: "Change the PIN: the present one, then the new one twice, all typed on the token.",
      discussion: """
        Logs in on the way if need be. After a power cut or an outage in the middle the token server knows which of the \
        two PINs counts, and the token asks it. An account of PingAM, privacyIDEA or eduMFA that has no PIN yet \
        gets its first one.
        """)

    @Argument(help: "Account. May be left out if there is only one.")
    var account: String?
    @OptionGroup var state: StateOption
    @OptionGroup var json: JSONOption

    func run() async throws {
      try await haveServiceDo(ControlCall(request: .changePIN, account: account), state, json) {
        (facts: SessionFacts) in
        "the PIN of \(facts.account ?? "?") is changed"
      }
    }
  }
}

struct Forget: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Give up an account whose PIN is forgotten: hold the button very long.",
    discussion: """
      There is no way to a forgotten PIN, and trying uses up attempts. This removes the account here and at the token \
      server; how long to hold the button is the board's, 6 seconds unless its profile says otherwise. A new activation \
      code brings it back with a new PIN. Other accounts stay as they are.
      """)

  @Argument(help: "Account, as `approval-token accounts` lists it.")
  var account: String
  @OptionGroup var state: StateOption
  @OptionGroup var json: JSONOption

  func run() async throws {
    try await haveServiceDo(ControlCall(request: .forget, account: account), state, json) { (facts: RemovalFacts) in
      "\(facts.removed) is forgotten" + (facts.serverTold ? "" : "; the token server could not be told (10003)")
    }
  }
}

/// - Parameter words: what came of it, for a person.
private func haveServiceDo<Facts: Codable>(
  _ call: ControlCall, _ state: StateOption, _ json: JSONOption, words: (Facts) -> String
) async throws {
  try await reporting {
    json.print(try ControlClient(path: state.controlSocket).callWithProgress(call, Facts.self), text: words)
  }
}
