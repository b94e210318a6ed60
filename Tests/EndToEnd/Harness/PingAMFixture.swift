// SPDX-License-Identifier: Apache-2.0
import Foundation
import ProgramHarness
import TestAM
import TestAMServer
import Testing

/// The delivery channel of AM's messages to the token.
enum Carrier: String, Sendable, CaseIterable {
  /// `approval-token push`, which reports the result of each message.
  case socket
  /// A real mosquitto, at which the token subscribes.
  case broker
}

/// A simulated AM in this process, and an approval token as another process, with a simulated board.
struct PingAMFixture: Sendable {
  let folder: TemporaryDirectory
  let server: TestAMServer
  let am: TestAM
  let token: TestToken
  /// Nil if messages are delivered over the control socket.
  let broker: TestBroker?

  /// A login whose request is shown.
  struct Login: Sendable {
    let push: TestAM.Push
    /// The token's transaction id.
    let token: String
    let mark: Int
  }

  /// The output of `approval-token push`.
  struct Brought: Decodable, Equatable {
    let account: String
    let known: Bool
  }

  func bring(_ message: [UInt8]) async throws -> Outcome {
    try await token.command("push", "--json", input: String(decoding: message, as: UTF8.self))
  }

  /// Publishes a message to the topic that AM has for the user.
  func publish(_ message: [UInt8], for user: String = "ann", at realm: TestAM? = nil) async throws {
    let mailbox = try #require((realm ?? am).profiles.first { $0.user == user }).deviceID
    try await #require(broker).publish(String(decoding: message, as: UTF8.self), to: mailbox)
  }

  /// Delivers a new message to the token.
  func deliver(
    _ push: TestAM.Push, of user: String = "ann", at realm: TestAM? = nil, by carrier: Carrier? = nil
  ) async throws {
    if broker != nil, carrier != .socket { return try await publish(push.envelope, for: user, at: realm) }
    let brought: Brought = try await bring(push.envelope).succeeded().decoded()
    #expect(!brought.known)
  }

  /// Delivers a message again that ann's token already has.
  func repeats(_ message: [UInt8]) async throws {
    guard broker != nil else {
      let brought: Brought = try await bring(message).succeeded().decoded()
      #expect(brought == Brought(account: "ann", known: true))
      return
    }
    let mark = try token.log.mark
    try await publish(message)
    // A message that is published after it and rejected shows that it has been handled.
    try await isRefused(Array("{}".utf8), .code(65), "no messageId")
    #expect(try token.log.lines.dropFirst(mark).count { $0.contains("opened request") } == 0)
  }

  /// Delivers a message to ann's token that it rejects; the command or the log has the reason.
  func isRefused(_ message: [UInt8], _ exit: ChildProcess.Exit, _ why: String) async throws {
    guard broker != nil else {
      let outcome = try await bring(message)
      #expect(outcome.exit == exit && outcome.errors.contains(why), "\(outcome)")
      return
    }
    let mark = try token.log.mark
    try await publish(message)
    try await token.log.line(with: "dropped: ", why, from: mark)
  }

  /// AM sends a push, the message is delivered, and its request is shown.
  /// - Parameter carrier: nil for the scene's own.
  func login(
    of user: String = "ann", at realm: TestAM? = nil, _ type: TestAM.PushType = .plain, timeout: Int64 = 600,
    by carrier: Carrier? = nil
  ) async throws -> Login {
    let mark = try token.log.mark
    let push = try #require((realm ?? am).send(user, type, timeout: timeout))
    try await deliver(push, of: user, at: realm, by: carrier)
    let line = try await token.log.line(with: "opened request ", from: mark)
    let name = try #require(line.firstMatch(of: /opened request ([0-9a-f-]{36})/)?.1)
    return Login(push: push, token: String(name), mark: mark)
  }

  /// The outcome in the token's log.
  /// - Parameter kind: the kind of the audit entry.
  func ending(of login: Login, as kind: String = "settled") async throws -> String {
    try await token.ending(of: login.token, as: kind, from: login.mark)
  }

  /// Registers a user's mechanism at the running service.
  func enroll(_ user: String, at realm: TestAM? = nil, as name: String? = nil, choosing pin: String? = nil) async throws
  {
    let realm = realm ?? am
    let mark = try token.log.mark
    let uri = realm.registrationURI(user)
    if let pin {
      try await token.enroll(uri, name: name ?? user, choosing: pin).succeeded()
    } else {
      try await token.enroll(uri, name: name).succeeded()
    }
    #expect(realm.finishRegistration(of: user) != nil)
    try await listens(from: mark)
  }

  /// Waits until the token is subscribed to a topic: an earlier message would be lost.
  func listens(from mark: Int) async throws {
    if broker != nil { try await token.log.line(with: "fetching push messages", from: mark) }
  }
}

/// Runs `body` with a running token without accounts, then verifies the audit chain.
/// - Parameters:
///   - settings: lines of the table `[push]`.
///   - authenticators: lines of the table `[authenticators]`.
///   - mqtt: additional lines of the table `[mqtt]`, used only with a broker.
///   - board: the simulated board's profile.
func withPingAMScene(
  by carrier: Carrier = .socket, settings: String = "", authenticators: String = "", mqtt: String = "",
  board: String = QuickBoard.withKeypad,
  _ body: @Sendable (PingAMFixture) async throws -> Void
) async throws {
  let folder = try TemporaryDirectory()
  defer { folder.remove() }
  try await run(
    "openssl",
    [
      "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj",
      "/CN=test am", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", folder.file("key.pem"), "-out",
      folder.file("am.pem"),
    ]
  ).succeeded()
  let server = try await TestAMServer.start(certificate: folder.file("am.pem"), key: folder.file("key.pem"))
  let broker: TestBroker? = if carrier == .broker { try await TestBroker() } else { nil }
  let table = try broker?.settings(mqtt) ?? ""
  let config = """
    [tls]
    authorities = "\(folder.file("am.pem"))"
    [push]
    \(settings)
    [authenticators]
    \(authenticators)
    \(table)
    """
  let token = TestToken(
    state: folder.file("token"), board: try folder.write(board, to: "board.toml"),
    config: try folder.write(config, to: "config.toml"))
  defer { token.end() }
  try await token.start()
  try await body(
    PingAMFixture(folder: folder, server: server, am: server.realm("alpha"), token: token, broker: broker))
  #expect(try await token.provesItsLog())
}

/// The claims of a JWT, after the `openssl` command has verified its signature.
func claims(_ jwt: String, signedWith secret: [UInt8], in folder: TemporaryDirectory) async throws -> [String: Any] {
  func decoded(_ text: Substring) -> Data? {
    let standard = text.replacing("-", with: "+").replacing("_", with: "/")
    return Data(base64Encoded: standard + String(repeating: "=", count: (4 - standard.count % 4) % 4))
  }
  func object(_ text: Substring) throws -> Any {
    try JSONSerialization.jsonObject(with: decoded(text) ?? Data())
  }
  let parts = jwt.split(separator: ".")
  try #require(parts.count == 3)
  let input = try folder.write("\(parts[0]).\(parts[1])", to: "signed-\(UInt32.random(in: .min ... .max))")
  let hex = secret.map { String(format: "%02x", $0) }.joined()
  let digest = try await run(
    "openssl", ["dgst", "-sha256", "-mac", "HMAC", "-macopt", "hexkey:\(hex)", "-r", input]
  ).succeeded().output
  let signature = try #require(decoded(parts[2])).map { String(format: "%02x", $0) }.joined()
  #expect(digest.hasPrefix(signature), "openssl finds another signature: \(digest)")
  let header = try object(parts[0]) as? [String: String]
  #expect(header == ["typ": "JWT", "alg": "HS256"])
  return try #require(try object(parts[1]) as? [String: Any])
}
