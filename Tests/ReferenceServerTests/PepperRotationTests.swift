// SPDX-License-Identifier: Apache-2.0
import BuiltPrograms
import Foundation
import Glibc
import ReferenceProtocol
import ServerTestSupport
import Testing

/// `token-server pepper`, run as a program.
@Suite(.timeLimit(.minutes(5)), .mayBlock) struct PepperRotationTests {
  @Test("A rotation keeps the former pepper until all portals have used the new one", arguments: Engine.allCases)
  func rotation(engine: Engine) throws {
    let fixture = try RotationFixture(engine)
    let old = try #require(fixture.contents("pepper"))
    let rotated = try fixture.pepper("rotate", "--json")
    #expect(rotated.status == 0 && rotated.text.contains("\"server_keys\":1"), "\(rotated.errors)")
    #expect(fixture.contents("pepper.former") == old)
    #expect(fixture.contents("pepper")?.count == 32 && fixture.contents("pepper") != old)
    for name in ["pepper", "pepper.former"] { #expect(try fixture.mode(name) == 0o600) }
    let again = try fixture.pepper("rotate")
    #expect(again.status == 1 && again.errors.contains("first \"token-server pepper retire\""), "\(again.errors)")
    let needed = try fixture.pepper("retire")
    #expect(needed.status == 1 && needed.errors.contains("needed by portals: portal;"), "\(needed.errors)")
    #expect(fixture.contents("pepper.former") == old)

    let server = try fixture.start()
    #expect(try fixture.access(server, secret: fixture.secret + "0") == 401)
    #expect(try fixture.pepper("retire").status == 1)
    #expect(try fixture.access(server) == 200)
    let retired = try fixture.pepper("retire")
    #expect(retired.text == "deleted \(fixture.directory)/pepper.former\n", "\(retired.errors)")
    #expect(try fixture.access(server) == 200)
    #expect(try fixture.pepper("retire").errors.contains("there is no former pepper"))
    #expect(server.stop() == 0)
    #expect(try fixture.rotateAfterStop().status == 0)
    #expect(try fixture.access(fixture.start()) == 200)
  }

  @Test("With --force a running server refuses what needs the former pepper, at once", arguments: Engine.allCases)
  func force(engine: Engine) throws {
    let fixture = try RotationFixture(engine)
    #expect(try fixture.pepper("rotate").status == 0)
    let server = try fixture.start()
    let forced = try fixture.pepper("retire", "--force")
    #expect(forced.status == 0 && forced.text.contains("refused from now on: portals: portal\n"), "\(forced.errors)")
    #expect(try fixture.access(server) == 401)
    let renewed = try server.admin("api-client", "renew", "portal")
    #expect(try fixture.access(server, secret: renewed["client_secret"] as? String) == 200)
  }

  @Test("A running server is found, also one with another directory", arguments: Engine.allCases)
  func running(engine: Engine) throws {
    let fixture = try RotationFixture(engine)
    let server = try fixture.start()
    let refused = try fixture.pepper("rotate")
    #expect(refused.status == 1 && refused.errors.contains("already running"), "\(refused.errors)")
    guard engine == .postgreSQL else { return }
    let other = try RotationFixture(sharing: fixture)
    let shared = try other.pepper("rotate")
    #expect(shared.status == 1 && shared.errors.contains("servers that use the database: 1;"), "\(shared.errors)")
    #expect(other.contents("pepper.former") == nil)
    #expect(server.stop() == 0)
    #expect(try other.rotateAfterStop().status == 0)
    // The first directory still has the old pepper.
    let stale = try fixture.program("api-client", "list")
    #expect(stale.status == 1 && stale.errors.contains("copy pepper and pepper.former"), "\(stale.errors)")
    for name in ["pepper", "pepper.former"] { try fixture.write(try #require(other.contents(name)), to: name) }
    #expect(try fixture.access(fixture.start()) == 200)
  }

  /// The states that a crash can leave, in their order.
  enum Interruption: CaseIterable, Sendable { case formerDrafted, formerWritten, newDrafted, newWritten }

  @Test(
    "After each interruption the server starts, and the next rotation completes",
    arguments: Engine.allCases, Interruption.allCases)
  func interrupted(engine: Engine, at point: Interruption) throws {
    let fixture = try RotationFixture(engine)
    let old = try #require(fixture.contents("pepper"))
    if point != .formerDrafted { try fixture.write(old, to: "pepper.former") }
    switch point {
    case .formerDrafted: try fixture.write(old.prefix(9), to: "pepper.former.new")
    case .formerWritten: break
    case .newDrafted: try fixture.write(Data([1, 2, 3]), to: "pepper.new")
    case .newWritten: try fixture.write(Data(repeating: 9, count: 32), to: "pepper")
    }
    let server = try fixture.start()
    #expect(try fixture.access(server) == 200)
    #expect(server.log.contains("the pepper is not replaced yet") == (point == .newWritten))
    // With the pepper that opens the keys, which becomes the former one.
    let later = try server.addPortal("later").secret
    #expect(server.stop() == 0)
    if point == .newWritten {
      let early = try fixture.pepper("retire", "--force")
      #expect(early.status == 1 && early.errors.contains("the rotation is not complete"), "\(early.errors)")
    }
    let rotated = try fixture.rotateAfterStop()
    #expect(rotated.status == 0, "\(rotated.errors)")
    #expect(fixture.contents("pepper.former") == old && fixture.contents("pepper") != old)
    #expect(fixture.contents("pepper.new") == nil && fixture.contents("pepper.former.new") == nil)
    let next = try fixture.start()
    #expect(try fixture.access(next) == 200)
    #expect(try fixture.pepper("retire").errors.contains("needed by portals: later;"))
    #expect(try fixture.access(next, as: "later", secret: later) == 200)
    #expect(try fixture.pepper("retire").status == 0)
  }

  @Test("Killed at any moment, the keys can be decrypted, and the portal's secret is known", arguments: Engine.allCases)
  func killed(engine: Engine) throws {
    let original = try RotationFixture(engine)
    var ends: Set<Int32> = []
    for moment in 0..<16 {
      let fixture = try RotationFixture(copying: original)
      let program = try RunningProgram(
        BuiltProgram.path("token-server"), ["pepper", "rotate", "--directory", fixture.directory])
      usleep(UInt32(moment) * 8000)
      program.send(SIGKILL)
      ends.insert(program.waitForEnd())
      let list = try fixture.program("api-client", "list")
      #expect(list.status == 0, "\(moment): \(list.errors)")
      let again = try fixture.pepper("rotate")
      #expect(again.status == 0 || again.errors.contains("is still in use"), "\(moment): \(again.errors)")
      let needed = try fixture.pepper("retire")
      #expect(needed.status == 1 && needed.errors.contains("portals: portal;"), "\(moment): \(needed.errors)")
    }
    #expect(ends.contains(SIGKILL))
  }

  @Test("A credential is not replaced: the command says what to load, and then rotates") func credential() throws {
    let fixture = try RotationFixture()
    let credentials = fixture.directory + "/credentials"
    try FileManager.default.createDirectory(atPath: credentials, withIntermediateDirectories: false)
    func command(_ arguments: String...) throws -> ProgramOutput {
      try run(
        "/usr/bin/env",
        ["CREDENTIALS_DIRECTORY=\(credentials)", BuiltProgram.path("token-server")] + arguments
          + ["--directory", fixture.directory])
    }
    let old = try #require(fixture.contents("pepper"))
    try fixture.write(old, to: "credentials/token-server-pepper")
    try FileManager.default.removeItem(atPath: fixture.directory + "/pepper")
    let refused = try command("pepper", "rotate")
    #expect(refused.status == 1 && refused.errors.contains("token-server-pepper-former"), "\(refused.errors)")
    #expect(fixture.contents("pepper.former") == nil)
    try fixture.write(old, to: "credentials/token-server-pepper-former")
    try fixture.write(Data(repeating: 5, count: 32), to: "credentials/token-server-pepper")
    #expect(try command("api-client", "list").status == 0)
    #expect(try command("pepper", "rotate").status == 0)
    #expect(try command("pepper", "rotate").errors.contains("is still in use"))
    let retired = try command("pepper", "retire", "--force")
    #expect(retired.text.hasSuffix("now remove the credential token-server-pepper-former\n"), "\(retired.errors)")
    try FileManager.default.removeItem(atPath: credentials + "/token-server-pepper-former")
    #expect(try command("api-client", "list").status == 0)
  }

  @Test("Codes and fleet tokens from before the rotation count, and a wrong code is counted once")
  func enrollments() throws {
    let fixture = try RotationFixture()
    let server = try fixture.start()
    let code = try server.activationCode(for: "alice")
    let fleet = try #require(try server.admin("fleet-token", "add", "bench")["token"] as? String)
    let devices = try (0..<3).map { _ in try DeviceClient(server) }
    try devices[0].register(fleet).expect(201)
    let known = devices[0].clientID
    #expect(server.stop() == 0)
    #expect(try fixture.rotateAfterStop().status == 0)
    let next = try fixture.start(port: server.port)
    for device in devices { device.nonce = nil }
    for _ in 1...9 { try devices[2].register(ActivationCode.random().digits).expect(401) }
    // The former device, not another one.
    try devices[0].register(fleet).expect(201)
    #expect(devices[0].clientID == known)
    try devices[1].register(code).expect(201)
    try devices[1].activate(code).expect(200)
    try devices[1].activate(code).expect(200)
    try devices[1].exchangeKeys().expect(200)
    #expect(try fixture.access(next) == 200)
    #expect(try fixture.pepper("retire").status == 0)
    try devices[2].register(fleet).expect(201)
  }

  /// A token asks for its topic only when it connects to the broker, which does not notice a rotation.
  @Test("A device keeps its MQTT topic through rotations", arguments: Engine.allCases)
  func mailbox(engine: Engine) throws {
    let fixture = try RotationFixture(engine)
    let text = String(decoding: try #require(fixture.contents("config.toml")), as: UTF8.self)
    try fixture.write(Data((text + "\n[mqtt]\nbroker = \"127.0.0.1:1\"\n").utf8), to: "config.toml")
    var server = try fixture.start()
    let device = try DeviceClient.enrolled(at: server, as: "alice")
    func mailbox() throws -> String? {
      try device.call("PUT", "/device/v1/profiles/PROF01/push", body: PushEnrollmentRequest(transport: .mqtt))
        .expect(200).decoded(PushEnrollmentResponse.self).mailbox
    }
    let first = try #require(try mailbox())
    for _ in 0..<2 {
      #expect(server.stop() == 0)
      #expect(try fixture.rotateAfterStop().status == 0)
      server = try fixture.start(port: server.port)
      device.nonce = nil
      try device.logIn().expect(200)
      #expect(try mailbox() == first)
      #expect(try fixture.pepper("retire", "--force").status == 0)
    }
  }

  @Test("A device approves after the rotation without enrolling again, and an interrupted enrollment continues")
  func enrolledDevice() throws {
    let (before, device) = try PINFixture.enrolled()
    let fresh = try DeviceClient(before.server)
    let code = try before.server.activationCode(for: "bob")
    try fresh.register(code).expect(201)
    try fresh.activateForPIN(code).expect(200)
    let assertion = try fresh.assertion("/device/v1/profiles/\(fresh.profileID)/pin", nonce: fresh.pinNonce)
    try fresh.activatePIN(assertion).expect(204)
    #expect(before.server.stop() == 0)
    let rotated = try run(
      BuiltProgram.path("token-server"), ["pepper", "rotate", "--directory", before.server.directory])
    #expect(rotated.status == 0, "\(rotated.errors)")
    let after = try PINFixture(after: before)
    (device.nonce, fresh.nonce) = (nil, nil)
    #expect(try device.call("GET", "/device/v1/pending").status == 401)
    try device.logIn().expect(200)
    let transaction = try after.ask(device)
    try device.send(device.answerWithPIN(device.fetch(transaction)), to: transaction).expect(200)
    try fresh.activateForPIN(code).expect(200)
    try fresh.activatePIN(assertion).expect(204)
    try fresh.exchangeKeys().expect(200)
  }
}

/// A server with a portal, which is started and stopped.
private final class RotationFixture {
  let directory: String
  let secret: String
  /// They remove the directory with the last reference.
  private var servers: [TokenServerProcess] = []

  init(_ engine: Engine = .sqlite) throws {
    directory = try ServerDirectories.new(onPostgreSQL: engine == .postgreSQL)
    let added = try run(
      BuiltProgram.path("token-server"), ["api-client", "add", "portal", "--json", "--directory", directory])
    let made = try JSONSerialization.jsonObject(with: Data(added.bytes)) as? [String: String]
    secret = try #require(made?["client_secret"])
  }

  init(copying other: RotationFixture) throws {
    (directory, secret) = (try ServerDirectories.copy(of: other.directory), other.secret)
  }

  /// Another directory with the same database.
  init(sharing other: RotationFixture) throws {
    (directory, secret) = (try ServerDirectories.copy(of: other.directory, sharing: true), other.secret)
  }

  deinit {
    if let database = TestDeployment.database(of: directory) { TestPostgreSQL.drop(database) }
    try? FileManager.default.removeItem(atPath: directory)
  }

  func start(port: Int = 0) throws -> TokenServerProcess {
    servers.append(try TokenServerProcess(directory: directory, port: port, servers: 1))
    return servers[servers.count - 1]
  }

  func program(_ arguments: String...) throws -> ProgramOutput {
    try run(BuiltProgram.path("token-server"), arguments + ["--directory", directory])
  }

  func pepper(_ arguments: String...) throws -> ProgramOutput {
    try run(BuiltProgram.path("token-server"), ["pepper"] + arguments + ["--directory", directory])
  }

  /// Rotates when the database has noticed that the server, which has ended, is gone; waits at most a minute for it.
  func rotateAfterStop() throws -> ProgramOutput {
    let deadline = ContinuousClock.now + .seconds(60)
    while true {
      let rotated = try pepper("rotate")
      guard rotated.errors.contains("servers that use the database") else { return rotated }
      try #require(ContinuousClock.now < deadline, "within 60 s the database must notice that the server is gone")
      usleep(100_000)
    }
  }

  /// The status of a request of a portal.
  func access(_ server: TokenServerProcess, as portal: String = "portal", secret: String? = nil) throws -> Int {
    let url = server.url + "/oauth/api/v4/authenticate/user/alice/enabled"
    return try server.curl("--user", "\(portal):\(secret ?? self.secret)", url).status
  }

  func contents(_ name: String) -> Data? { FileManager.default.contents(atPath: "\(directory)/\(name)") }

  func mode(_ name: String) throws -> Int? {
    try FileManager.default.attributesOfItem(atPath: "\(directory)/\(name)")[.posixPermissions] as? Int
  }

  func write(_ data: Data, to name: String) throws { try data.write(to: URL(filePath: "\(directory)/\(name)")) }
}
