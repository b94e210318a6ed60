// SPDX-License-Identifier: Apache-2.0
import BuiltPrograms
import Foundation
import Synchronization

/// Where the tokens servers of tests store their data, and how many use it: all tests of servers can run with each.
package enum TestDeployment {
  /// `TOKEN_SERVER_DATABASE=postgresql`, instead of a SQLite file.
  package static let usesPostgreSQL = environment("TOKEN_SERVER_DATABASE") == "postgresql"
  /// `TOKEN_SERVER_COUNT=N`: N servers behind HAProxy.
  package static let serverCount = environment("TOKEN_SERVER_COUNT").flatMap { Int($0) } ?? 1

  package static var hasSeveralServers: Bool { serverCount > 1 }

  private static func environment(_ name: String) -> String? { ProcessInfo.processInfo.environment[name] }

  /// The database that a configuration names.
  package static func database(of directory: String) -> String? {
    let text = (try? String(contentsOfFile: directory + "/config.toml", encoding: .utf8)) ?? ""
    return text.split(separator: "\n").first { $0.hasPrefix("url = \"postgresql:") }?.split(separator: "\"")[1]
      .description
  }
}

/// Directories of servers, which tests copy instead of initializing new ones. Removed when this process exits.
package enum ServerDirectories {
  private static let kept = Mutex<[String]>([])

  /// The directory of one `token-server init` without a PIN, with the user alice.
  private static let initialized = Result { try initialize() }
  private static let initializedOnPostgreSQL = Result {
    try initialize(["--database", try TestPostgreSQL.newDatabase()])
  }

  private static func initialize(_ database: [String] = []) throws -> String {
    let made = try initialize(with: BuiltProgram.path("token-server"), database)
    keep(made)
    return made
  }

  private static func initialize(with program: String, _ database: [String]) throws -> String {
    let made = path()
    for command in [["init", "--no-pin"] + database, ["user", "add", "alice"]] {
      let output = try run(program, command + ["--directory", made])
      guard output.status == 0 else { throw Curl.CurlError(description: "\(command): \(output.errors)") }
    }
    return made
  }

  /// - Parameter program: a `token-server` of any version that has PostgreSQL.
  /// - Returns: the directory of a server that this program initialized, with a database of its own.
  static func onPostgreSQL(of program: String) throws -> String {
    try initialize(with: program, ["--database", try TestPostgreSQL.newDatabase()])
  }

  /// Returns the path of a new directory, which does not exist yet.
  static func path() -> String { NSTemporaryDirectory() + "token-server-\(UUID().uuidString)" }

  /// - Returns: a new server's directory, ready to serve. All of them have the same keys and pepper.
  /// - Parameter onPostgreSQL: whether its database is one of `TestPostgreSQL`.
  package static func new(onPostgreSQL: Bool = TestDeployment.usesPostgreSQL) throws -> String {
    try copy(of: (onPostgreSQL ? initializedOnPostgreSQL : initialized).get())
  }

  /// Removes the directory when this process exits.
  static func keep(_ directory: String) {
    kept.withLock { paths in
      if paths.isEmpty { atexit { ServerDirectories.removeKept() } }
      paths.append(directory)
    }
  }

  private static func removeKept() {
    for path in kept.withLock({ $0 }) { try? FileManager.default.removeItem(atPath: path) }
  }

  /// Copies the files of a stopped server with their modes, without the lock, the pipe and the log.
  /// - Parameter sharing: whether the copy uses the same PostgreSQL database, instead of a copy of it.
  /// - Returns: the path of the copy.
  package static func copy(of directory: String, sharing: Bool = false) throws -> String {
    let (manager, copy) = (FileManager.default, path())
    try manager.createDirectory(
      atPath: copy, withIntermediateDirectories: false, attributes: [.posixPermissions: 0o700])
    for name in try manager.contentsOfDirectory(atPath: directory) where !["lock", "wake.pipe", "log"].contains(name) {
      try manager.copyItem(atPath: "\(directory)/\(name)", toPath: "\(copy)/\(name)")
    }
    if !sharing, let database = TestDeployment.database(of: directory) {
      let file = "\(copy)/config.toml"
      try String(contentsOfFile: file, encoding: .utf8)
        .replacingOccurrences(of: database, with: TestPostgreSQL.newDatabase(copying: database))
        .write(toFile: file, atomically: true, encoding: .utf8)
    }
    return copy
  }
}
