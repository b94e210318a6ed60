// SPDX-License-Identifier: Apache-2.0
import Foundation
import Glibc
import ReferenceProtocol

/// The environment of a run: its programs and its directory, which is deleted afterwards.
final class Stage {
  let programs: String
  /// On a disk, because every answer is stored durably before it is sent: /var/tmp is on a disk, /tmp may be in memory.
  let directory: String

  init(programs: String) throws {
    self.programs = programs
    var template = Array("/var/tmp/approval-bench.XXXXXX".utf8CString)
    guard mkdtemp(&template) != nil else {
      throw BenchError("no directory in /var/tmp: \(String(cString: strerror(errno)))")
    }
    directory = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
  }

  func clear() { try? FileManager.default.removeItem(atPath: directory) }

  func start(_ program: String, _ arguments: [String], environment: [String: String] = [:]) throws -> Child {
    try Child("\(programs)/\(program)", arguments, log: "\(directory)/\(program).log", environment: environment)
  }

  func run(_ program: String, _ arguments: [String]) throws -> [UInt8] {
    try Child.run("\(programs)/\(program)", arguments, log: "\(directory)/\(program).log")
  }
}

/// A new running token server with one portal.
final class TokenServer {
  let issuer: String
  let port: UInt16
  let portalSecret: String
  let readings: ProcessReadings
  var authority: String { "\(directory)/ca.pem" }
  private let stage: Stage
  private let directory: String
  private let child: Child

  // The commands' JSON members.
  private struct Portal: Decodable {
    var secret: String
    enum CodingKeys: String, CodingKey { case secret = "client_secret" }
  }

  private struct Fleet: Decodable { var token: String }
  private struct Code: Decodable {
    var code: String
    var uri: String
  }

  /// - Parameters:
  ///   - pins: whether accounts have PINs; a type "payment" then requires them.
  ///   - idleSeconds: after this time the server closes a connection without requests.
  init(on stage: Stage, named name: String, pins: Bool = false, idleSeconds: Int = 3600) throws {
    self.stage = stage
    directory = "\(stage.directory)/\(name)"
    _ = try stage.run("token-server", ["init", "--directory", directory] + (pins ? [] : ["--no-pin"]))
    // All portals and devices are on this machine, and some wait long between two requests.
    let file = directory + "/config.toml"
    let template = try String(contentsOfFile: file, encoding: .utf8)
    let limits = "[limits]\nconnections_per_source = 20000\nidle_seconds = \(idleSeconds)\n"
    try ("callback_private_addresses = [\"127.0.0.0/8\"]\n" + template.replacing("# [limits]\n", with: limits))
      .write(toFile: file, atomically: true, encoding: .utf8)
    let portal = try stage.run("token-server", ["api-client", "add", "portal", "--directory", directory, "--json"])
    portalSecret = try JSON.decode(Portal.self, from: portal).secret
    child = try stage.start("token-server", ["serve", "--directory", directory, "--port", "0"])
    issuer = String(try child.readLine().split(separator: " ").last ?? "")
    port = issuer.split(separator: ":").last.flatMap { UInt16($0) } ?? 0
    readings = ProcessReadings(processID: child.processID)
  }

  func fleetToken() throws -> String {
    let made = try stage.run("token-server", ["fleet-token", "add", "bench", "--directory", directory, "--json"])
    return try JSON.decode(Fleet.self, from: made).token
  }

  /// Adds a user.
  /// - Returns: an activation code, and its URI.
  func add(user: String) throws -> (code: String, uri: String) {
    _ = try stage.run("token-server", ["user", "add", user, "--directory", directory])
    let made = try stage.run("token-server", ["activation-code", user, "--directory", directory, "--json"])
    let code = try JSON.decode(Code.self, from: made)
    return (code.code, code.uri)
  }

  /// The id of a user's only device.
  func deviceID(of user: String) throws -> String {
    struct User: Decodable { var user: String }
    struct Device: Decodable {
      var id: String
      var users: [User]

      enum CodingKeys: String, CodingKey {
        case id = "device_id"
        case users
      }
    }
    let list = try stage.run("token-server", ["device", "list", "--directory", directory, "--json"])
    let devices = try JSON.decode([Device].self, from: list)
    guard let device = devices.first(where: { $0.users.contains { $0.user == user } }) else {
      throw BenchError("\(user) has no device")
    }
    return device.id
  }

  /// Enrolls one device per user, `count` in total; none of them listens yet.
  func enroll(_ count: Int, as name: String, at site: Site) throws -> [EnrolledDevice] {
    let connection = Connection(to: site)
    defer { connection.hangUp() }
    return try (0..<count).map { index in
      try EnrolledDevice(
        "\(name)-\(index)", at: site, code: add(user: "\(name)-\(index)").code,
        profile: "B" + String(index + 10_000), over: connection)
    }
  }

  func end() { child.end() }
}

/// A running token with the simulated board, enrolled.
final class Token {
  /// The variables of the installed service that affect memory and start.
  static let serviceEnvironment = ["BOTAN_MLOCK_POOL_SIZE": "128", "GNUTLS_NO_IMPLICIT_INIT": "1"]

  let user: String
  let readings: ProcessReadings
  let control: ControlSocket
  private let child: Child
  /// The network process of a service of two processes.
  private let network: Child?
  /// Of the network process.
  let networkReadings: ProcessReadings?

  /// - Parameters:
  ///   - environment: variables of the service, but not of the enrollment.
  ///   - isSplit: whether the service is two processes.
  init(
    on stage: Stage, user: String, at server: TokenServer, environment: [String: String] = [:], isSplit: Bool = false
  ) throws {
    self.user = user
    let state = "\(stage.directory)/\(user)"
    _ = try stage.run("approval-token", ["enroll", server.add(user: user).uri, "--state", state])
    let environment = Self.serviceEnvironment.merging(environment) { _, own in own }
    let relay = ["--relay", state + ".relay"]
    network = isSplit ? try stage.start("approval-tokend", ["network"] + relay, environment: environment) : nil
    if let network, try network.readLine() != "ready" { throw BenchError("the network process is not ready") }
    networkReadings = network.map { ProcessReadings(processID: $0.processID) }
    child = try stage.start(
      "approval-tokend", (isSplit ? ["device"] + relay : ["serve"]) + ["--state", state], environment: environment)
    guard try child.readLine() == "ready" else { throw BenchError("approval-tokend is not ready") }
    readings = ProcessReadings(processID: child.processID)
    control = ControlSocket(path: state + "/control.sock")
  }

  /// Starts first and enrolls then, with a PIN that is typed.
  init(on stage: Stage, user: String, choosing pin: String, at server: TokenServer) throws {
    self.user = user
    let state = "\(stage.directory)/\(user)"
    (network, networkReadings) = (nil, nil)
    child = try stage.start("approval-tokend", ["serve", "--state", state])
    guard try child.readLine() == "ready" else { throw BenchError("approval-tokend is not ready") }
    readings = ProcessReadings(processID: child.processID)
    control = ControlSocket(path: state + "/control.sock")
    let led = try control.followLED()
    let enrollment = try stage.start("approval-token", ["enroll", server.add(user: user).uri, "--state", state])
    for wanted in ["new PIN wanted", "new PIN wanted, a second time"] {
      _ = try led.waitForLED(wanted)
      pause(seconds: 0.6)
      try control.press(pin.map(String.init) + ["enter"])
    }
    _ = try enrollment.readLine()
    _ = try led.waitForLED("idle, connected")
  }

  func end() {
    child.end()
    network?.end()
  }
}
