// SPDX-License-Identifier: Apache-2.0
import FoundationEssentials
import JSONValues

/// The token server of the bench, in a directory of its own.
actor ServerProgram {
  private let program: String
  private let folder: String
  private var process: ChildProcess?
  /// Chosen at the first start, and kept.
  private var port = 0
  private var commands = 0

  nonisolated var directory: String { folder + "/server" }
  nonisolated var authority: String { directory + "/ca.pem" }

  init(program: String, folder: String) {
    self.program = program
    self.folder = folder
  }

  var isRunning: Bool { process?.isRunning == true }
  var url: String { "https://localhost:\(port)" }

  /// Makes the server's keys and configuration.
  func create() async throws {
    _ = try await administer("init")
    let file = directory + "/config.toml"
    let text = try String(contentsOfFile: file, encoding: .utf8)
    // The portal is on this machine, an address that callbacks need a setting for.
    let settings = text.replacing("# not_me_hold_seconds = 300", with: "not_me_hold_seconds = 15")
      .replacing("# biometric = false", with: "biometric = true")
      .replacing("# custom_authenticators = false", with: "custom_authenticators = true")
    try ("callback_private_addresses = [\"127.0.0.1\"]\n" + settings + Self.types).write(
      toFile: file, atomically: false, encoding: .utf8)
  }

  /// The types and the authenticators of the bench, in addition to those of `init`.
  private static let types = """

    [[type]]
    name = "number"
    method = "push"
    request_expires_in = 60
    read_back = "digits"

    [[type]]
    name = "hurry"
    method = "push"
    request_expires_in = 8
    callback_on_expiry = true

    [[authenticator]]
    id = "finger"
    name = "Fingerprint"
    kind = "biometric"

    [[authenticator]]
    id = "badge"
    name = "Badge"
    kind = "custom"
    signature = "badge"

    [[authenticator]]
    id = "key"
    name = "Security key"
    kind = "custom"
    signature = "security_key"

    [[type]]
    name = "finger"
    method = "push_with_fingerprint"
    alternatives = ["badge"]

    [[type]]
    name = "badge"
    method = "push_with_custom_authenticator"
    authenticator = "badge"

    [[type]]
    name = "key"
    method = "push_with_custom_authenticator"
    authenticator = "key"
    """

  /// A new portal.
  func addPortal(callback: String) async throws -> Portal {
    let added = try await administer("api-client", "add", Portal.client, "--json")
    guard let secret = JSONValue(parsing: Array(added.utf8))?["client_secret"]?.text else {
      throw BenchError("the token server made no portal")
    }
    return try .made(url: url, authority: authority, secret: secret, callback: callback, folder: folder)
  }

  func start() async throws {
    if port == 0 { port = try freePort() }
    let child = try await ChildProcess.start(
      "token-server", [program, "serve", "--directory", directory, "--port", "\(port)"], folder: folder)
    process = child
    do { port = try await Self.port(of: child) } catch {
      await stop()
      throw error
    }
  }

  /// Waits until the token server listens.
  private static func port(of child: ChildProcess) async throws -> Int {
    try await wait(.seconds(20), for: "the token server should listen") {
      guard child.isRunning else { throw BenchError("the token server has ended: \(child.errors(atMost: 1000))") }
      return child.output.hasSuffix("\n")
    }
    guard let line = child.output.split(separator: "\n").first(where: { $0.hasPrefix("listening on https://") }),
      let port = line.split(separator: ":").last.flatMap({ Int($0) })
    else { throw BenchError("the token server does not say where it listens") }
    return port
  }

  func stop() async {
    let former = process
    await former?.stop()
    if process === former { process = nil }
  }

  /// Runs a command of the administrator.
  /// - Returns: its output, which is JSON with `--json`.
  func administer(_ words: String...) async throws -> String {
    commands += 1
    let child = try await ChildProcess.start(
      "token-server-\(commands)", [program] + words + ["--directory", directory], folder: folder)
    let status = await child.end()
    defer { for file in [child.outputFile, child.errorFile] { try? FileManager.default.removeItem(atPath: file) } }
    guard status == 0 else {
      throw BenchError("token-server \(words.joined(separator: " ")): \(child.errors(atMost: 500))")
    }
    return child.output
  }

  /// A new URI with which a user's token is enrolled.
  func enrollmentURI(of user: String) async throws -> String {
    let answer = try await administer("activation-code", user, "--json")
    guard let uri = JSONValue(parsing: Array(answer.utf8))?["uri"]?.text else {
      throw BenchError("the token server made no activation code")
    }
    return uri
  }
}
