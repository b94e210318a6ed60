// SPDX-License-Identifier: Apache-2.0
import Foundation
import ProgramHarness
import TestAM
import TestAMServer
import Testing

/// Makes `Fixtures/COMMIT.tar.xz` with the programs of that commit: the state of a token and of a token server.
/// `scripts/compatibility state COMMIT` runs this; other runs skip it.
@Suite(.timeLimit(.minutes(10))) struct EarlierStateMaker {
  static let destination = ProcessInfo.processInfo.environment["EARLIER_STATE"]

  @Test(
    "State of an earlier version is made", .enabled(if: EarlierStateMaker.destination != nil),
    arguments: ProgramVersion.earlier)
  func state(version: ProgramVersion) async throws {
    let folder = try TemporaryDirectory()
    defer { folder.remove() }
    try await run("openssl", EarlierState.certificateRequest(in: folder)).succeeded()
    let am = try await TestAMServer.start(certificate: folder.file("am.pem"), key: folder.file("am.key"))
    let server = VersionedServer(program: version.server, directory: folder.file("server"))
    defer { server.end() }
    let token = VersionedToken(
      program: version.token, state: folder.file("token"),
      board: try folder.write(QuickBoard.withKeypad, to: "board.toml"),
      config: try folder.write("[tls]\nauthorities = \"\(folder.file("am.pem"))\"\n", to: "token.toml"))
    defer { token.end() }

    let credentials = try await server.initialize(withPIN: true, ["--host", EarlierState.host])
    try configure(server)
    try await server.start(port: nil)
    try await token.start()
    try await enrollUsers(of: server, token)
    try await enrollOneTimePasswords(token)
    let realm = am.realm("alpha")
    try await enrollMechanisms(of: realm, token)
    try await enrollWithPIN(at: realm, token, in: folder)
    let transactions = try await useAccounts(of: server.portal(credentials), token)

    try await token.stop()
    try await server.stop()
    let metadata = EarlierState.Metadata(
      seconds: Int(Date().timeIntervalSince1970), credentials: credentials, transactions: transactions)
    try JSONEncoder().encode(metadata).write(to: URL(filePath: folder.file("facts.json")))
    let file = "\(try #require(Self.destination))/\(version.name).tar.xz"
    try await run(
      "tar",
      [
        "-cJf", file, "-C", folder.path, "--exclude=lock", "--exclude=*.sock", "--exclude=*.pipe", "--owner=0",
        "--group=0", "facts.json", "board.toml", "am.pem", "server", "token",
      ]
    ).succeeded()
  }

  /// The address is in the token's vault, so it is the same in all tests of the state.
  private func configure(_ server: VersionedServer) throws {
    let file = server.directory + "/config.toml"
    let text = try String(contentsOfFile: file, encoding: .utf8)
      .replacing("listen = \"127.0.0.1\"", with: "listen = \"\(EarlierState.host)\"")
      .replacing("port = 8443", with: "port = \(EarlierState.port)")
    let slow = "\n[[type]]\nname = \"slow\"\nmethod = \"push\"\nrequest_expires_in = 3600\n"
    try (text + slow).write(toFile: file, atomically: true, encoding: .utf8)
  }

  private func enrollUsers(of server: VersionedServer, _ token: VersionedToken) async throws {
    try await server.command(["user", "add", "bob"])
    try await server.command(["api-client", "add", "reader", "--no-mobile-authentication"])
    try await server.command(["fleet-token", "add", "fleet"])
    for (user, pin) in EarlierState.pins.sorted(by: { $0.key < $1.key }) {
      try await token.enroll(try await server.activation(for: user), "--name", user, choosing: pin)
    }
    try await token.isConnected()
  }

  private func enrollOneTimePasswords(_ token: VersionedToken) async throws {
    for name in ["counter", "locked"] {
      try await token.enroll("otpauth://hotp/ACME:\(name)?secret=\(EarlierState.secret)")
    }
    try await token.enroll("otpauth://totp/ACME:time?secret=\(EarlierState.secret)&digits=8&period=60")
    try await token.enroll(
      "otpauth://hotp/ACME:typed?secret=\(EarlierState.secret)", "--ask-pin", choosing: EarlierState.typedPIN)
    for expected in EarlierState.codes.prefix(2) {
      let code = try await token.command("otp", "counter").succeeded().output
      #expect(code == expected)
    }
    try await token.command("lock", "locked").succeeded()
  }

  private func enrollMechanisms(of am: TestAM, _ token: VersionedToken) async throws {
    let oath = "secret=\(EarlierState.secret)"
    try await token.enroll(
      am.registrationURI("ann", oath: oath).replacing("mfauth://totp", with: "mfauth://hotp"), "--name", "ann")
    try await token.enroll(
      am.registrationURI("cleo", policies: #"{"deviceTampering":{"score":0.8}}"#), "--name", "cleo")
    try await token.command("lock", "cleo", "--policy", "deviceTampering").succeeded()
  }

  /// Enrolls a mechanism of AM with a PIN, which is a setting of the service.
  private func enrollWithPIN(at am: TestAM, _ token: VersionedToken, in folder: TemporaryDirectory) async throws {
    try await token.stop()
    let settings = """
      [tls]
      authorities = "\(folder.file("am.pem"))"
      [push]
      pin_for_biometric = true
      pin_digits = 6
      """
    let withPIN = token.configured(by: try folder.write(settings, to: "pin.toml"))
    defer { withPIN.end() }
    try await withPIN.start()
    try await withPIN.enroll(am.registrationURI("dan"), "--name", "dan", choosing: EarlierState.typedPIN)
    try await withPIN.stop()
    try await token.start()
    try await token.isConnected()
  }

  /// - Returns: the transactions with their states at the server; one of each stays open.
  private func useAccounts(of portal: Portal, _ token: VersionedToken) async throws -> [String: String] {
    let device = try #require(try await portal.devices().first).id
    var states: [String: String] = [:]
    let login = try await portal.ask(on: device)
    try await token.hold()
    states[login] = "authenticated"
    try await token.shows("idle, connected")
    let denied = try await portal.ask("bob", on: device)
    try await token.deny()
    states[denied] = "rejected"
    try await token.shows("idle, connected")
    let payment = try await portal.ask(on: device, type: "payment")
    try await token.type(EarlierState.wrongPIN)
    try await token.type(try #require(EarlierState.pins["alice"]))
    states[payment] = "authenticated"
    try await token.shows("idle, connected")
    // A wrong PIN of bob stays counted.
    let mistyped = try await portal.ask("bob", on: device, type: "payment")
    try await token.type(EarlierState.wrongPIN)
    try await token.deny(at: Wanted.pin.rawValue)
    states[mistyped] = "rejected"
    try await token.shows("idle, connected")
    states[try await portal.ask(on: device, type: "slow")] = "open"
    return states
  }
}
