import ArgumentParser
import Courier
import CurlCourier
import Glibc
import MobileAuth
import ReferenceAdapter
import ReferenceProtocol
import Secrets
import Vault

struct Enroll: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Enrol an account with the activation URI that the portal gives you.",
    discussion: """
      The URI looks like approvaltoken://activate?server=…&code=…&pin_sha256=…. Give it as the argument, or "-" to \
      read it from standard input, which keeps the one-time code out of the shell's history. After a power cut or an \
      outage, the same URI goes on where it stopped.
      """)

  @Argument(help: ArgumentHelp("Activation URI, or - for standard input.", valueName: "uri"))
  var uri: String

  @Option(help: "What you call this account. Default: the server's profile id.")
  var name: String?

  @Option(help: "PEM file with more certificate authorities, for servers without a pin.", completion: .file())
  var authorities: String?

  @OptionGroup var state: StateOption
  @OptionGroup var json: JSONOption

  func validate() throws {
    if let name, !(1...64).contains(name.utf8.count) || name.contains(where: { $0.isWhitespace || $0.isNewline }) {
      throw ValidationError("--name takes 1 to 64 bytes without blanks")
    }
  }

  func run() async throws {
    try await reporting {
      forbidMemoryDumps()
      overwriteFreedMemory()
      let text = uri == "-" ? readLine(strippingNewline: true) ?? "" : uri
      let uri = try ActivationURI(parsing: text)
      let facts = if let done = try throughService(text) { done } else { try await enrol(uri) }
      json.print(facts) { "enrolled \($0.account) at \($0.server)" }
    }
  }

  /// The service has the panel, which a PIN needs.
  /// - Returns: nil if none is running.
  private func throughService(_ uri: String) throws -> AccountFacts? {
    let call = ControlCall(request: .enrol, uri: uri, authorities: authorities.map(absolute), account: name)
    do { return try ControlClient(path: state.controlSocket).callWithProgress(call, AccountFacts.self) } catch {
      guard let failure = error as? CommandFailure, failure.isServiceMissing else { throw error }
      return nil
    }
  }

  private func enrol(_ uri: ActivationURI) async throws -> AccountFacts {
    let vault = try state.openVault(creating: true)
    let trust = try vault.trust(pins: uri.pins, authorities: authorities)
    let enrolment = Enrolment(
      registry: vault, timekeeper: SystemTimekeeper(), pinDesk: nil, progress: { say("\($0) …") },
      makeCourier: { CurlCourier(trust: $0) })
    let account = try await enrolment.enrol(
      uri, name: name, trust: trust,
      capabilities: ApprovalCapabilities(display: .none, keypad: false, button: true, led: .rgb))
    pokeService(state)
    return AccountFacts(account: account.id.text, server: account.server.text, profile: account.profile)
  }
}

/// The service may run in another directory.
private func absolute(_ path: String) -> String {
  guard !path.hasPrefix("/"), let folder = getcwd(nil, 0) else { return path }
  defer { free(folder) }
  return String(cString: folder) + "/" + path
}

/// Tells a running service that the accounts have changed. None running is fine: it reads them when it starts.
func pokeService(_ state: StateOption) {
  _ = try? ControlClient(path: state.controlSocket).call(ControlCall(request: .reload), Done.self)
}
