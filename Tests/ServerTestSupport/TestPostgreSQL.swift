// SPDX-License-Identifier: Apache-2.0
import BuiltPrograms
import Foundation
import FreePorts
import Synchronization

/// A PostgreSQL of Debian's package, without durability, reached by a socket in a directory of its own, and over TLS on
/// loopback. It runs as an unprivileged user, and until this process exits.
package final class TestPostgreSQL: Sendable {
  package struct PostgreSQLError: Error, CustomStringConvertible {
    package let description: String
  }

  /// The directory of the newest version's programs. Those in PATH are scripts that look for it each time.
  private static let programs = Result {
    let versions = try? FileManager.default.contentsOfDirectory(atPath: "/usr/lib/postgresql")
    guard let newest = versions?.max(by: { $0.compare($1, options: .numeric) == .orderedAscending }) else {
      throw PostgreSQLError(description: "there is no PostgreSQL: install Debian's package of that name")
    }
    return "/usr/lib/postgresql/\(newest)/bin"
  }

  /// Started at the first use.
  private static let shared = Result { try TestPostgreSQL() }

  private let directory: String
  private let port: Int
  private let server: Mutex<RunningProgram>
  private let start: @Sendable () throws -> RunningProgram
  private let databases = Atomic<Int>(0)

  /// - Parameter template: the URL of a database to copy, to which no program is connected; nil for an empty one.
  /// - Returns: the URL of a new database.
  package static func newDatabase(copying template: String? = nil) throws -> String {
    let cluster = try shared.get()
    let name = "test\(cluster.databases.add(1, ordering: .relaxed).newValue)"
    let original = template.flatMap { Self.name(in: $0) }
    // The connections of a program that was killed end a moment later, which is long on a busy machine.
    let deadline = ContinuousClock.now + .seconds(60)
    while true {
      do {
        try cluster.query("CREATE DATABASE \(name) TEMPLATE \(original ?? "template0") STRATEGY FILE_COPY")
        return cluster.url(of: name)
      } catch {
        guard ContinuousClock.now < deadline, "\(error)".contains("being accessed") else { throw error }
        usleep(20_000)
      }
    }
  }

  /// The same database over TLS, with verification of certificate and name.
  package static func overTLS(_ url: String) throws -> String {
    let cluster = try shared.get()
    return "postgresql://approval@localhost:\(cluster.port)/\(name(in: url) ?? "")"
      + "?sslmode=verify-full&sslrootcert=\(cluster.directory)/tls.crt"
  }

  /// Deletes a database, also if programs are connected to it.
  package static func drop(_ url: String) {
    guard let cluster = try? shared.get(), let name = name(in: url) else { return }
    try? cluster.query("DROP DATABASE IF EXISTS \(name) WITH (FORCE)")
  }

  /// Deletes the directories of databases whose tests were killed, and that have ended.
  private static func removeLeftovers(in folder: String) {
    let files = FileManager.default
    for name in (try? files.contentsOfDirectory(atPath: folder)) ?? [] where name.hasPrefix(directoryPrefix) {
      let lock = try? String(contentsOfFile: "\(folder)/\(name)/data/postmaster.pid", encoding: .utf8)
      // Without this file, or with a negative number in it, the database is being made.
      guard let process = lock?.split(separator: "\n").first.flatMap({ Int32($0) }), process > 0 else { continue }
      if kill(process, 0) != 0, errno == ESRCH { try? files.removeItem(atPath: "\(folder)/\(name)") }
    }
  }

  private static let directoryPrefix = "test-postgresql-"

  /// Each new database is some hundred files. To create and delete them costs little in memory.
  private static var folderInMemory: String {
    var space = statvfs()
    let isLarge = statvfs("/dev/shm", &space) == 0 && space.f_bavail * space.f_bsize >= 1 << 30
    return isLarge ? "/dev/shm" : "/tmp"
  }

  private static func name(in url: String) -> String? {
    url.split(separator: "?").first?.split(separator: "/").last.map(String.init)
  }

  /// Runs SQL as the superuser.
  /// - Returns: the rows, one a line, with columns separated by `|`.
  @discardableResult
  package static func query(_ statement: String, in url: String) throws -> String {
    let output = try run(programs.get() + "/psql", [url, "-qAt", "-v", "ON_ERROR_STOP=1", "-c", statement])
    guard output.status == 0 else { throw PostgreSQLError(description: "\(statement): \(output.errors)") }
    return output.text
  }

  private init() throws {
    let programs = try Self.programs.get()
    let folder = Self.folderInMemory
    Self.removeLeftovers(in: folder)
    directory = "\(folder)/\(Self.directoryPrefix)\(UUID().uuidString.prefix(8))"
    try FileManager.default.createDirectory(
      atPath: directory, withIntermediateDirectories: false, attributes: [.posixPermissions: 0o700])
    port = try FreePort.reserve()
    let isRoot = geteuid() == 0
    try Self.makeCertificate(in: directory)
    // PostgreSQL refuses to run as root.
    if isRoot { for file in ["", "/tls.key", "/tls.crt"] { chown(directory + file, 65534, 65534) } }
    func command(_ program: String, _ arguments: [String]) -> (String, [String]) {
      isRoot
        ? (
          "/usr/bin/setpriv",
          ["--reuid=65534", "--regid=65534", "--clear-groups", "\(programs)/\(program)"] + arguments
        )
        : ("\(programs)/\(program)", arguments)
    }
    let create = command(
      "initdb",
      ["-D", "\(directory)/data", "-U", "approval", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync"])
    let created = try run(create.0, create.1)
    guard created.status == 0 else { throw PostgreSQLError(description: "initdb: \(created.errors)") }
    let (program, arguments) = command(
      "postgres",
      [
        "-D", "\(directory)/data", "-k", directory, "-h", "127.0.0.1", "-p", "\(port)", "-c", "ssl=on",
        "-c", "ssl_key_file=\(directory)/tls.key", "-c", "ssl_cert_file=\(directory)/tls.crt", "-c", "fsync=off",
        "-c", "max_connections=400", "-c", "max_wal_size=128MB", "-c", "autovacuum=off",
      ])
    start = { [directory] in
      let server = try RunningProgram(program, arguments, errors: "\(directory)/log")
      TestPostgreSQL.end.withLock { $0 = (server.processIdentifier, directory) }
      return server
    }
    server = Mutex(try start())
    atexit { TestPostgreSQL.stop() }
    try waitUntilReady()
  }

  private static func makeCertificate(in directory: String) throws {
    let made = try run(
      "openssl",
      [
        "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2", "-subj",
        "/CN=database", "-addext", "subjectAltName=DNS:localhost", "-keyout", "\(directory)/tls.key", "-out",
        "\(directory)/tls.crt",
      ])
    guard made.status == 0 else { throw PostgreSQLError(description: "openssl: \(made.errors)") }
  }

  /// Ends the database at once, as a crash does, and starts it again.
  package static func restart() throws {
    let cluster = try shared.get()
    try cluster.server.withLock { server in
      server.send(SIGQUIT)
      server.waitForEnd()
      server = try cluster.start()
    }
    try cluster.waitUntilReady()
  }

  /// Stops all its processes, as on a machine that hangs: connections stay open, and nothing answers.
  package static func freeze() throws { try shared.get().signalAll(SIGSTOP) }

  package static func thaw() throws { try shared.get().signalAll(SIGCONT) }

  private func signalAll(_ signal: Int32) throws {
    let process = server.withLock(\.processIdentifier)
    // Frozen first, so that it starts no process after the list was read.
    kill(process, signal)
    let children = try String(contentsOfFile: "/proc/\(process)/task/\(process)/children", encoding: .utf8)
    for child in children.split(separator: " ").compactMap({ Int32($0) }) { kill(child, signal) }
  }

  private func waitUntilReady() throws {
    let deadline = ContinuousClock.now + .seconds(60)
    while (try? query("SELECT 1")) == nil {
      guard ContinuousClock.now < deadline else {
        let log = (try? String(contentsOfFile: "\(directory)/log", encoding: .utf8)) ?? ""
        throw PostgreSQLError(description: "PostgreSQL is not ready within 60 s: \(log)")
      }
      usleep(50_000)
    }
  }

  private typealias Running = (process: Int32, directory: String)
  private static let end = Mutex<Running?>(nil)

  private static func stop() {
    guard let running = end.withLock({ $0 }) else { return }
    kill(running.process, SIGQUIT)
    try? FileManager.default.removeItem(atPath: running.directory)
  }

  private func query(_ statement: String) throws { try Self.query(statement, in: url(of: "postgres")) }

  private func url(of database: String) -> String {
    "postgresql://approval@/\(database)?host=\(directory)&port=\(port)"
  }
}
