// SPDX-License-Identifier: Apache-2.0
import Foundation
import ReferenceProtocol

/// A new running token server with one portal, or several servers on a database behind a load balancer.
final class TokenServer {
  let issuer: String
  let port: UInt16
  let portalSecret: String
  /// Of the first server.
  var readings: ProcessReadings { processes[0] }
  let processes: [ProcessReadings]
  var authority: String { "\(directory)/ca.pem" }
  private let stage: Stage
  private let directory: String
  private let database: String?
  private let children: [Child]

  /// The size of the database: of the SQLite file and its write-ahead log, or as PostgreSQL reports it.
  func databaseBytes() throws -> Double {
    if let database {
      let size = try Child.run(
        "/usr/bin/psql", [database, "-qAt", "-c", "SELECT pg_database_size(current_database())"],
        log: directory + ".psql.log")
      return Double(String(decoding: size, as: UTF8.self).trimmingCharacters(in: .whitespacesAndNewlines)) ?? .nan
    }
    return ["", "-wal"].reduce(0) { sum, suffix in
      let attributes = try? FileManager.default.attributesOfItem(atPath: "\(directory)/token-server.db\(suffix)")
      return sum + ((attributes?[.size] as? NSNumber)?.doubleValue ?? 0)
    }
  }

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
  ///   - idleSeconds: after this time the server closes a connection without requests; nil for its defaults.
  ///   - database: the URL of an empty PostgreSQL database; nil for SQLite.
  ///   - servers: the number of servers on the database, behind HAProxy if there are several.
  init(
    on stage: Stage, named name: String, pins: Bool = false, idleSeconds: Int? = 3600, database: String? = nil,
    servers: Int = 1
  ) throws {
    self.stage = stage
    self.database = database
    directory = "\(stage.directory)/\(name)"
    _ = try stage.run(
      "token-server",
      ["init", "--directory", directory] + (pins ? [] : ["--no-pin"]) + (database.map { ["--database", $0] } ?? []))
    let port = servers > 1 ? Loopback.freePort() : nil
    // All portals and devices are on this machine, and some wait long between two requests.
    let file = directory + "/config.toml"
    let template = try String(contentsOfFile: file, encoding: .utf8)
    let idle = idleSeconds.map { "idle_seconds = \($0)\ndevice_idle_seconds = \($0)\n" } ?? ""
    let limits = "[limits]\nconnections_per_source = 20000\n" + idle
    let behind = port.map {
      "issuer = \"https://\(Loopback.address):\($0)\"\nproxy_protocol_from = [\"\(Loopback.address)\"]\n"
    }
    try
      ((behind ?? "") + "callback_private_addresses = [\"127.0.0.0/8\"]\n"
      + template.replacing("# [limits]\n", with: limits))
      .write(toFile: file, atomically: true, encoding: .utf8)
    let portal = try stage.run("token-server", ["api-client", "add", "portal", "--directory", directory, "--json"])
    portalSecret = try JSON.decode(Portal.self, from: portal).secret
    // Copied before a server has files that it must not share.
    let directories = [directory] + (1..<servers).map { "\(stage.directory)/\(name)-\($0)" }
    for copy in directories.dropFirst() { try FileManager.default.copyItem(atPath: directory, toPath: copy) }
    var started: [(child: Child, issuer: String, port: UInt16)] = []
    for own in directories {
      let port = servers > 1 ? Loopback.freePort() : 0
      let child = try stage.start("token-server", ["serve", "--directory", own, "--port", "\(port)"])
      started.append((child, String(try child.readLine().split(separator: " ").last ?? ""), port))
    }
    let balancer = try port.map {
      try LoadBalancer.start(on: stage, named: name, port: $0, before: started.map(\.port))
    }
    children = started.map(\.child) + (balancer.map { [$0] } ?? [])
    processes = started.map { ProcessReadings(processID: $0.child.processID) }
    issuer = started[0].issuer
    self.port = port ?? issuer.split(separator: ":").last.flatMap { UInt16($0) } ?? 0
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

  func end() { children.forEach { $0.end() } }
}
