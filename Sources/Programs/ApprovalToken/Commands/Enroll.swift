// SPDX-License-Identifier: Apache-2.0
import ArgumentParser
import Glibc
import MobileAuth
import Secrets
import ServerBackends

struct Enroll: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    abstract: "Enroll an account with the URI from the portal or the administrator.",
    discussion: """
      The URI is approvaltoken://activate?server=…; or, for a push token of privacyIDEA or eduMFA, the content of the \
      QR code, otpauth://pipush/…, pia://pipush/… or edumfa-push://edumfa/…; or, for a push mechanism of PingAM, \
      pushauth://push/… or mfauth://…; or, for one-time passwords only, otpauth://totp/… or otpauth://hotp/…. Give it \
      in a file, or "-" to read it from standard input; approvaltoken:, pia: and edumfa-push: also as the argument, \
      which leaves the one-time code in the shell's history. After a power loss or an outage, run the same command \
      again: it resumes.
      """, aliases: ["enrol"])

  @Argument(help: ArgumentHelp("Enrollment URI, or - for standard input.", valueName: "uri"))
  var uri: String?

  @Option(help: "File with the enrollment URI.", completion: .file())
  var file: String?

  @Option(
    help: "Your name for this account. Default: the server's profile id, the push token's serial, or AM's account name."
  )
  var name: String?

  @Option(help: "PEM file with additional certificate authorities, for servers without a pin.", completion: .file())
  var authorities: String?

  @Option(
    name: .customLong("pin"),
    help: ArgumentHelp(
      "For push tokens and PingAM: SHA-256 of the public key in the server's certificate, in Base64. May be repeated.",
      valueName: "hash"))
  var pins: [String] = []

  @Flag(
    help: """
      Authenticate the server by its certificate's issuer from now on, although it was enrolled with a pin. Without \
      this, an enrollment without a pin keeps the pins of earlier enrollments at the same server.
      """)
  var dropPins = false

  @Flag(
    help: """
      Choose a PIN on the token: for push tokens of privacyIDEA and eduMFA, it is typed there before each approval; \
      for one-time passwords, before each code is shown. With mfauth://… the PIN also replaces a fingerprint.
      """)
  var askPIN = false

  @Option(
    help: ArgumentHelp(
      "For PingAM: the topic where AM delivers messages. Default: a random topic.", valueName: "id"))
  var mailbox: String?

  @OptionGroup var state: StateOption
  @OptionGroup var json: JSONOption

  func validate() throws {
    if let name, !isAccountName(name) { throw ValidationError("--name takes 1 to 64 bytes without blanks") }
    guard (uri == nil) != (file == nil) else { throw ValidationError("give a URI, or --file, or - to read one") }
    if let uri, Backends.carriesLastingSecret(uri) {
      throw ValidationError(
        """
        this URI carries a secret that outlives the enrollment, and every user of this machine can read a program's \
        arguments: give it on standard input (`approval-token enroll -`, paste it, Enter) or in a file (--file)
        """)
    }
    guard pins.allSatisfy({ $0.utf8.count == 44 && $0.hasSuffix("=") }) else {
      throw ValidationError("--pin takes 44 characters of Base64, the last of them \"=\"")
    }
    if let mailbox, let rule = Backends.rule(brokenByMailbox: mailbox) {
      throw ValidationError("--mailbox takes \(rule)")
    }
  }

  func run() async throws {
    try await reporting(json) {
      forbidMemoryDumps()
      overwriteFreedMemory()
      let text = try read()
      try check(text)
      let facts = if let done = try throughService(text) { done } else { try await enroll(text) }
      json.print(facts) { "enrolled \($0.account) at \($0.server)" }
    }
  }

  /// Rejects invalid input before the service is contacted.
  private func check(_ text: String) throws {
    guard text.contains(where: { !$0.isWhitespace }) else {
      let place = file.map { "the first line of \($0)" } ?? (uri == "-" ? "standard input" : "the command line")
      throw CommandError(.badData, "nothing on \(place), where an enrollment URI was expected")
    }
    let form = try Backends.form(of: text)
    if askPIN, !form.takesPIN {
      throw CommandError(.usage, "--ask-pin is for push tokens and one-time passwords; here \(form.pinDecision)")
    }
    if mailbox != nil, !form.takesMailbox {
      throw CommandError(.usage, "--mailbox is for push mechanisms of PingAM: pushauth://… and mfauth://…")
    }
  }

  /// The first line of the input.
  private func read() throws -> String {
    if let file {
      guard let stream = fopen(file, "re") else {
        throw CommandError(.badData, "cannot read \(file): \(String(cString: strerror(errno)))")
      }
      defer { fclose(stream) }
      var bytes = [UInt8](repeating: 0, count: 16_384)
      let count = fread(&bytes, 1, bytes.count, stream)
      let line = bytes[..<count].drop { $0 == UInt8(ascii: "\n") }.prefix { $0 != UInt8(ascii: "\n") }
      return String(decoding: line, as: UTF8.self)
    }
    return uri == "-" ? readLine(strippingNewline: true) ?? "" : uri ?? ""
  }

  /// Enrolls through the running service, which has the panel for a PIN, and the configuration.
  /// - Returns: nil if no service is running.
  private func throughService(_ uri: String) throws -> AccountResponse? {
    let call = ControlCall(
      request: .enroll, uri: uri, authorities: authorities.map(absolute), pins: pins.isEmpty ? nil : pins,
      dropsPins: dropPins ? true : nil, asksPIN: askPIN ? true : nil, mailbox: mailbox, account: name)
    do { return try ControlClient(path: state.controlSocket).callWithProgress(call, AccountResponse.self) } catch {
      guard let failure = error as? CommandError, failure.isServiceMissing else { throw error }
      guard !askPIN else {
        throw CommandError(.unavailable, "the PIN is typed on the token: start `approval-token serve` first")
      }
      return nil
    }
  }

  private func enroll(_ text: String) async throws -> AccountResponse {
    let vault = try state.openVault(creating: true)
    var request = EnrollmentRequest(text)
    request.name = name
    request.authorities = authorities
    request.pins = pins
    request.dropsPins = dropPins
    request.mailbox = mailbox
    request.progress = { say("\($0) …") }
    let account = try await Backends(vault).enroll(request)
    requestReload(state)
    return AccountResponse(account)
  }
}

/// An absolute path: the service may run in another directory.
private func absolute(_ path: String) -> String {
  guard !path.hasPrefix("/"), let folder = getcwd(nil, 0) else { return path }
  defer { free(folder) }
  return String(cString: folder) + "/" + path
}

/// Makes a running service read the accounts again. Does nothing if none is running.
func requestReload(_ state: StateOption) {
  _ = try? ControlClient(path: state.controlSocket).call(ControlCall(request: .reload), Done.self)
}
