// SPDX-License-Identifier: Apache-2.0
import Foundation
import Glibc

/// A PostgreSQL of Debian's package with its default settings, which wait for storage at each commit. It is reached by
/// a socket in its directory, and runs as the user nobody if this process is root: PostgreSQL refuses to be root.
final class Cluster {
  private let directory: String
  private let server: Child

  init() throws {
    let installed = (try? FileManager.default.contentsOfDirectory(atPath: "/usr/lib/postgresql")) ?? []
    guard let newest = installed.max(by: { $0.compare($1, options: .numeric) == .orderedAscending }) else {
      throw BenchError("there is no PostgreSQL: install Debian's package of that name")
    }
    let programs = "/usr/lib/postgresql/\(newest)/bin"
    var template = Array("/var/tmp/bench-pg.XXXXXX".utf8CString)
    guard mkdtemp(&template) != nil else { throw BenchError("no directory in /var/tmp") }
    directory = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
    let isRoot = geteuid() == 0
    if isRoot { chown(directory, 65534, 65534) }
    let prefix = isRoot ? ["/usr/bin/setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"] : []
    let data = directory + "/data"
    func command(_ words: [String]) -> (String, [String]) {
      let words = prefix + words
      return (words[0], Array(words.dropFirst()))
    }
    let create = command(
      ["\(programs)/initdb", "-D", data, "-U", "approval", "-A", "trust", "-E", "UTF8", "--locale=C"])
    _ = try Child.run(create.0, create.1, log: directory + ".log")
    let serve = command(
      ["\(programs)/postgres", "-D", data, "-k", directory, "-h", "", "-c", "max_connections=200"])
    server = try Child(serve.0, serve.1, log: directory + ".log")
    let deadline = Instant.now + 60
    while (try? query("SELECT 1")) == nil {
      guard Instant.now < deadline else { throw BenchError("PostgreSQL did not start, see \(directory).log") }
      pause(seconds: 0.05)
    }
  }

  /// - Returns: the URL of a new database.
  func newDatabase(_ name: String) throws -> String {
    try query("CREATE DATABASE \(name)")
    return url(of: name)
  }

  func end() {
    // SIGINT, a fast shutdown: SIGTERM would wait for the servers' connections.
    kill(server.processID, SIGINT)
    server.end()
    try? FileManager.default.removeItem(atPath: directory)
    try? FileManager.default.removeItem(atPath: directory + ".log")
  }

  private func query(_ statement: String) throws {
    _ = try Child.run(
      "/usr/bin/psql", [url(of: "postgres"), "-qAt", "-v", "ON_ERROR_STOP=1", "-c", statement],
      log: directory + ".log")
  }

  private func url(of database: String) -> String { "postgresql://approval@/\(database)?host=\(directory)" }
}
