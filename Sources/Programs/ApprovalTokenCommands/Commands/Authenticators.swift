// SPDX-License-Identifier: Apache-2.0
import ArgumentParser
import ControlProtocol
import DisplayText

struct Authenticators: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "authenticators",
    abstract: "List the authenticators of an account: the PIN, and others that its token server offers.",
    discussion: """
      Lists those that are registered, and those that could be registered now, because the token server offers them and \
      this token can use them. The preferred one is used by a login that names none. At PingAM, privacyIDEA and eduMFA: \
      what stands, or could stand, for the fingerprint that they ask for.
      """)

  @Argument(help: "Account. Optional if there is only one.")
  var account: String?
  @Flag(help: "List only those that are registered, or only those that are not.")
  var selection: Selection?
  @OptionGroup var state: StateOption
  @OptionGroup var json: JSONOption

  enum Selection: String, EnumerableFlag { case registered, notRegistered }

  func run() throws {
    try reporting(json) {
      var response = try ControlClient(path: state.controlSocket).call(
        .authenticators(account: account), AuthenticatorsResponse.self, progress: showProgress)
      if let selection { response.authenticators.removeAll { !selection.includes($0) } }
      json.print(response, text: \.lines)
    }
  }
}

extension Authenticators.Selection {
  fileprivate func includes(_ entry: AuthenticatorsResponse.Entry) -> Bool {
    switch self {
    case .registered: entry.isRegistered
    case .notRegistered: !entry.isRegistered && entry.isSupported
    }
  }
}

struct AuthenticatorCommand: ParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "authenticator", abstract: "Register, deregister or prefer an authenticator of an account.",
    subcommands: [Register.self, Deregister.self, Prefer.self])

  struct Subject: ParsableArguments {
    @Argument(help: "Account, as `approval-token accounts` lists it.")
    var account: String
    @Argument(help: "Identifier, as `approval-token authenticators` lists it.")
    var identifier: String
    @OptionGroup var state: StateOption
    @OptionGroup var json: JSONOption

    func call(_ request: ControlRequest, words: (AuthenticatorsResponse) -> String) throws {
      try performControlCall(request, state, json, words: words)
    }
  }

  struct Register: ParsableCommand {
    static let configuration = CommandConfiguration(
      commandName: "register", abstract: "Register an authenticator, confirmed by a hold of the button.",
      discussion: """
        Asks for the PIN if the account is not logged in with it, then for a hold of the button, then for the code of \
        the authenticator, which the token server checks. At PingAM, privacyIDEA and eduMFA, where this token checks \
        it, asks for the hold, the authenticator and then the PIN. Make sure that you started this command yourself.
        """)

    @OptionGroup var subject: Subject

    func run() throws {
      try subject.call(.registerAuthenticator(account: subject.account, identifier: subject.identifier)) { response in
        "registered \(subject.identifier) for \(response.account)"
      }
    }
  }

  struct Deregister: ParsableCommand {
    static let configuration = CommandConfiguration(
      commandName: "deregister", abstract: "Deregister an authenticator other than the PIN.",
      discussion: """
        Asks for the PIN if the account is not logged in with it, or with this authenticator. If it was the preferred \
        one, the PIN is preferred from then on.
        """)

    @OptionGroup var subject: Subject

    func run() throws {
      try subject.call(.deregisterAuthenticator(account: subject.account, identifier: subject.identifier)) { response in
        let rest =
          response.serverNotified == false
          ? " on this token; the token server could not be notified: deregister it there" : ""
        return "deregistered \(subject.identifier) for \(response.account)\(rest)"
      }
    }
  }

  struct Prefer: ParsableCommand {
    static let configuration = CommandConfiguration(
      commandName: "prefer", abstract: "Use a registered authenticator for logins that name none.")

    @OptionGroup var subject: Subject

    func run() throws {
      try subject.call(.preferAuthenticator(account: subject.account, identifier: subject.identifier)) { response in
        "\(response.account) logs in with \(subject.identifier)"
      }
    }
  }
}

extension AuthenticatorsResponse {
  /// One line for each authenticator.
  fileprivate var lines: String {
    guard !authenticators.isEmpty else { return "\(account) has none of them" }
    return authenticators.map { entry in
      let state = entry.isRegistered ? "registered" : "not registered"
      let marks = (entry.isPreferred ? ", preferred" : "") + (entry.isSupported ? "" : ", cannot be used now")
      return "\(entry.identifier)  \(entry.name.sanitized(atMost: 64))  \(entry.kind)  \(state)\(marks)"
    }.joined(separator: "\n")
  }
}
