// SPDX-License-Identifier: Apache-2.0
package import ArgumentParser
package import ControlProtocol
import Glibc
import MobileAuth
import Secrets

package struct Enroll: DaemonCommand {
  package static let configuration = CommandConfiguration(
    commandName: "enroll", abstract: "Enroll an account with the URI from the portal or the administrator.",
    discussion: """
      The URI is approvaltoken://activate?server=…; or, for a push token of privacyIDEA or eduMFA, the content of the \
      QR code, otpauth://pipush/…, pia://pipush/… or edumfa-push://edumfa/…; or, for a push mechanism of PingAM, \
      pushauth://push/… or mfauth://…; or, for one-time passwords only, otpauth://totp/… or otpauth://hotp/…. Give it \
      in a file, or "-" to read it from standard input; approvaltoken:, pia: and edumfa-push: also as the argument, \
      which leaves the one-time code in the shell's history. approvaltoken-fleet://register?… only registers this device \
      at the reference token server, before it has a user. Or give the address of the reference token server with \
      --server, and type the activation code on the token's keypad. After a power loss or an outage, run the same \
      command again: it resumes.
      """, aliases: ["enrol"])

  @Argument(help: ArgumentHelp("Enrollment URI, or - for standard input.", valueName: "uri"))
  package var uri: String?

  @Option(help: "File with the enrollment URI.", completion: .file())
  package var file: String?

  @Option(
    help: ArgumentHelp(
      "Instead of a URI: address of the reference token server. Its activation code is typed on the keypad.",
      valueName: "https://host"))
  package var server: String?

  @Option(
    help: """
      Your name for this account. Default: user and server, such as ann@example.com; for push tokens the serial; for \
      PingAM and one-time passwords the account name in the URI.
      """
  )
  package var name: String?

  @Option(help: "PEM file with additional certificate authorities, for servers without a pin.", completion: .file())
  package var authorities: String?

  @Option(
    name: .customLong("pin"),
    help: ArgumentHelp(
      "SHA-256 of the public key in the server's certificate, in Base64; ignored if the URI contains one. May be repeated.",
      valueName: "hash"))
  package var pins: [String] = []

  @Flag(
    help: """
      Authenticate the server by its certificate's issuer from now on, although it was enrolled with a pin. Without \
      this, an enrollment without a pin keeps the pins of earlier enrollments at the same server.
      """)
  package var dropPins = false

  @Flag(
    help: """
      Choose a PIN on the token: for push tokens of privacyIDEA and eduMFA, it is typed there before each approval; \
      for one-time passwords, before each code is shown. With mfauth://… the PIN also replaces a fingerprint.
      """)
  package var askPIN = false

  @Option(
    help: ArgumentHelp(
      "For PingAM: the topic where AM delivers messages. Default: a random topic.", valueName: "id"))
  package var mailbox: String?

  @Option(
    name: .customLong("allow-origin"),
    help: ArgumentHelp(
      "Resource server that `approval-token call` may call as the user: https://HOST[:PORT]. May be repeated.",
      valueName: "origin"))
  package var allowedOrigins: [String] = []

  @Option(
    help: ArgumentHelp(
      "If there is no network: how long to wait for one. The LED shows it.", valueName: "seconds"))
  package var waitForNetwork = 0

  @OptionGroup package var state: StateOption
  @OptionGroup package var json: JSONOption

  package init() {}

  package func validate() throws {
    if let name, !isAccountName(name) { throw ValidationError("--name takes 1 to 64 bytes without blanks") }
    guard [uri, file, server].count(where: { $0 != nil }) == 1 else {
      throw ValidationError("give a URI, or --file, or - to read one, or --server")
    }
    if let uri, KindsOfServers.rules?.carriesLastingSecret(uri) == true {
      throw ValidationError(
        """
        this URI carries a secret that outlives the enrollment, and every user of this machine can read a program's \
        arguments: give it on standard input (`approval-token enroll -`, paste it, Enter) or in a file (--file)
        """)
    }
    guard pins.allSatisfy({ $0.utf8.count == 44 && $0.hasSuffix("=") }) else {
      throw ValidationError("--pin takes 44 characters of Base64, the last of them \"=\"")
    }
    guard (0...EnrollmentOptions.longestNetworkWait).contains(waitForNetwork) else {
      throw ValidationError("--wait-for-network takes 0 to \(EnrollmentOptions.longestNetworkWait) seconds")
    }
    guard allowedOrigins.count <= EnrollmentOptions.mostOrigins else {
      throw ValidationError("--allow-origin may be given at most \(EnrollmentOptions.mostOrigins) times")
    }
    if let mailbox, let rule = KindsOfServers.rules?.rule(brokenByMailbox: mailbox) {
      throw ValidationError("--mailbox takes \(rule)")
    }
  }

  package func run() throws {
    try reporting(json) {
      try checkState()
      let service = ControlClient(path: state.controlSocket)
      // The daemon's program checks arguments that depend on the kind of server. The input stays unread for it.
      guard uri == nil || uri == "-", mailbox == nil, service.isServiceRunning else { try OtherProgram.daemon.start() }
      protectMemory()
      guard let made = try throughService(try readURI()) else {
        throw CommandError(.unavailable, "the service has ended meanwhile; retry")
      }
      show(made)
    }
  }

  /// - Throws: if this would enroll another token than the one of the service that is installed here.
  package func checkState() throws { try state.requireChoice("run \(InstalledService.call("enroll …"))") }

  package func show(_ made: EnrollmentResponse) {
    json.print(made) { made in
      made.account.map { "enrolled \($0) at \(made.server)" }
        ?? "registered this device at \(made.server); no user is enrolled yet"
    }
  }

  /// Enrolls through the running service, which has the panel for a PIN, and the configuration.
  /// - Returns: nil if no service is running.
  package func throughService(_ uri: String) throws -> EnrollmentResponse? {
    do {
      return try ControlClient(path: state.controlSocket).call(
        .enroll(options(uri)), EnrollmentResponse.self, progress: showProgress)
    } catch let failure as CommandError where failure.isServiceMissing { return nil }
  }

  package func options(_ uri: String) -> EnrollmentOptions {
    var options = EnrollmentOptions(uri: uri)
    options.server = server
    options.name = name
    options.authorities = authorities.map(absolute)
    options.pins = pins
    options.dropsPins = dropPins
    options.asksPIN = askPIN
    options.mailbox = mailbox
    options.allowedOrigins = allowedOrigins
    options.networkWait = waitForNetwork
    return options
  }

  /// The first line of the input, without the blanks around it that pasting often adds; empty with `--server`.
  package func readURI() throws -> String {
    if server != nil { return "" }
    let text = try read().trimmingPrefix(while: \.isWhitespace)
    guard let last = text.lastIndex(where: { !$0.isWhitespace }) else {
      let place = file.map { "the first line of \($0)" } ?? (uri == "-" ? "standard input" : "the command line")
      throw CommandError(.badData, "nothing on \(place), where an enrollment URI was expected")
    }
    return String(text[...last])
  }

  private func read() throws -> String {
    if let file {
      let line = try fileContents(file).drop { $0 == UInt8(ascii: "\n") }.prefix { $0 != UInt8(ascii: "\n") }
      return String(decoding: line, as: UTF8.self)
    }
    return try uri == "-" ? Self.line({ getchar() }) : uri ?? ""
  }

  /// A line of at most 16,384 bytes.
  /// - Parameter next: returns the next byte; `EOF` at the end.
  static func line(_ next: () -> Int32) throws -> String {
    var bytes: [UInt8] = []
    while true {
      let byte = next()
      guard byte != EOF, byte != 0x0A else { return String(decoding: bytes, as: UTF8.self) }
      guard bytes.count < 16_384 else {
        throw CommandError(.badData, "the line on standard input is too long for an enrollment URI")
      }
      bytes.append(UInt8(truncatingIfNeeded: byte))
    }
  }
}

/// An absolute path: the service may run in another directory.
private func absolute(_ path: String) -> String {
  guard !path.hasPrefix("/"), let folder = getcwd(nil, 0) else { return path }
  defer { free(folder) }
  return String(cString: folder) + "/" + path
}
