// SPDX-License-Identifier: Apache-2.0
import ApprovalTestKit
import BuiltPrograms
import Foundation
import ReferenceProtocol
import ServerTestSupport
import Testing

/// `token-server init --database` and `token-server migrate`.
@Suite(.timeLimit(.minutes(5)), .mayBlock) struct PostgreSQLCommandTests {
  private func serverProgram(_ arguments: String...) throws -> ProgramOutput {
    try run(BuiltProgram.path("token-server"), arguments)
  }

  @Test("A server is initialized on PostgreSQL, and its commands use it") func initialize() throws {
    let (directory, url) = (NSTemporaryDirectory() + "init-\(UUID().uuidString)", try TestPostgreSQL.newDatabase())
    defer { try? FileManager.default.removeItem(atPath: directory) }
    #expect(try serverProgram("init", "--directory", directory, "--database", url).status == 0)
    #expect(!FileManager.default.fileExists(atPath: directory + "/token-server.db"))
    #expect(try serverProgram("user", "add", "alice", "--directory", directory).status == 0)
    #expect(try TestPostgreSQL.query(#"SELECT id FROM "user""#, in: url) == "alice\n")
    let twice = try serverProgram("user", "add", "alice", "--directory", directory)
    #expect(twice.status == 1 && twice.errors.contains("already exists"))
    let refused = try serverProgram("init", "--directory", directory + "2", "--database", "postgresql://ann:pw@db/t")
    #expect(refused.status == 1 && refused.errors.contains("sslmode") && !refused.errors.contains("pw"))
    #expect(!FileManager.default.fileExists(atPath: directory + "2"))
  }

  @Test("A database with the keys of a server, also of an earlier version, is refused by init, and unchanged")
  func initializeTwice() throws {
    let (directory, url) = (NSTemporaryDirectory() + "init-\(UUID().uuidString)", try TestPostgreSQL.newDatabase())
    let draft = directory + "2.new-0123abcd"
    defer { for path in [directory, directory + "2", draft] { try? FileManager.default.removeItem(atPath: path) } }
    #expect(try serverProgram("init", "--directory", directory, "--database", url).status == 0)
    try TestPostgreSQL.query(
      """
      DROP INDEX access_token_by_profile, device_by_deletion, profile_by_server_key, profile_by_former_server_key;
      DELETE FROM schema_migration WHERE name = '4: indexes'
      """, in: url)
    let stored = "SELECT (SELECT COUNT(*) FROM schema_migration), fingerprint, sealed_secret FROM server_key"
    let before = try TestPostgreSQL.query(stored, in: url)
    try FileManager.default.createDirectory(atPath: draft, withIntermediateDirectories: false)
    try FileManager.default.copyItem(atPath: directory + "/config.toml", toPath: draft + "/config.toml")
    let again = try serverProgram("init", "--directory", directory + "2", "--database", url)
    let text =
      "the database has the keys of a token server: use an empty one; if the keys are of an \"init\" that was "
      + "interrupted, create the database again"
    #expect(again.status == 1 && again.errors.hasSuffix("\nError: \(text)\n"), "\(again.errors)")
    #expect(again.errors.contains("if none runs, delete it\n"), "\(again.errors)")
    #expect(try TestPostgreSQL.query(stored, in: url) == before)
    #expect(!FileManager.default.fileExists(atPath: directory + "2"))
  }

  @Test("A database of a later version is refused") func later() throws {
    let server = try TokenServerProcess(directory: ServerDirectories.new(onPostgreSQL: true))
    #expect(server.stop() == 0)
    let url = try #require(TestDeployment.database(of: server.directory))
    try TestPostgreSQL.query("INSERT INTO schema_migration VALUES ('999: later')", in: url)
    let output = try serverProgram("user", "add", "bob", "--directory", server.directory)
    #expect(output.status == 1 && output.errors.contains("later version of token-server"))
  }

  @Test("A server moves to PostgreSQL with all rows, and a device goes on there") func migrate() throws {
    let server = try TokenServerProcess(directory: ServerDirectories.new(onPostgreSQL: false), servers: 1)
    let portal = try server.addPortal()
    let device = try DeviceClient.enrolled(at: server, as: "alice")
    func ask(_ server: TokenServerProcess) throws -> String {
      try server.curl(
        "--user", "\(portal.id):\(portal.secret)", "--data", "type=login&user_id=alice&device_id=\(device.clientID)",
        "--data", "callback_uri=https://portal.example/", server.url + "/oauth/api/v4/authenticate/user"
      ).expect(200).json["transaction_id"] as? String ?? ""
    }
    let transaction = try ask(server)
    let url = try TestPostgreSQL.newDatabase()
    let running = try serverProgram("migrate", "--to", url, "--directory", server.directory)
    #expect(running.status == 1 && running.errors.contains("already running"))
    #expect(server.stop() == 0)
    let moved = try serverProgram("migrate", "--to", url, "--directory", server.directory, "--json")
    #expect(moved.status == 0, "\(moved.errors)")
    let rows = try JSONSerialization.jsonObject(with: Data(moved.bytes)) as? [String: any Sendable]
    #expect((rows?["rows"] as? [String: Int])?["mobile_auth_transaction"] == 1)
    let again = try serverProgram("migrate", "--to", url, "--directory", server.directory)
    #expect(again.status == 1 && again.errors.contains("not empty"))
    let file = server.directory + "/config.toml"
    try (String(contentsOfFile: file, encoding: .utf8) + "\n[database]\nurl = \"\(url)\"\n")
      .write(toFile: file, atomically: true, encoding: .utf8)
    let next = try TokenServerProcess(directory: server.directory, port: server.port, servers: 1)
    device.nonce = nil
    try device.logIn().expect(200)
    #expect(try device.pending().map(\.transactionID) == [transaction])
    try device.send(device.answer(transaction, .accept), to: transaction).expect(200)
    #expect(try device.pending().isEmpty)
    _ = next
  }

  @Test("While requests wait for the database: 503, but the server is ready, and ends in time") func held() async throws
  {
    var isInTime = false
    // One of three times is enough: on a busy machine each step may be late.
    for _ in 1...3 where !isInTime { isInTime = try await isReadyWhileHeld() }
    #expect(isInTime)
  }

  /// The database holds the first request back until it cancels the statement after 15 s; the second request has then
  /// waited for more than 10 s for the only connection.
  /// - Returns: whether the server is ready and has metrics meanwhile, and whether it ends in time.
  private func isReadyWhileHeld() async throws -> Bool {
    let directory = try ServerDirectories.new(onPostgreSQL: true)
    let file = directory + "/config.toml"
    try String(contentsOfFile: file, encoding: .utf8)
      .replacingOccurrences(
        of: "[database]\n",
        with: """
          [limits]
          request_seconds = 60
          [operations]
          port = 0
          drain_seconds = 0
          [database]
          connections = 1

          """
      )
      .write(toFile: file, atomically: true, encoding: .utf8)
    let server = try TokenServerProcess(directory: directory, servers: 1)
    let portal = try server.addPortal()
    let url = try #require(TestDeployment.database(of: directory))
    let lock = "BEGIN; LOCK TABLE api_client IN ACCESS EXCLUSIVE MODE; SELECT 'locked'; SELECT pg_sleep(120)"
    let holder = try RunningProgram(
      "/usr/bin/psql", [url, "-qAt"] + lock.split(separator: ";").flatMap { ["-c", "\($0)"] })
    defer { holder.send(SIGTERM) }
    #expect(holder.nextLine() == "locked")
    @Sendable func status() throws -> Int {
      try server.curl(
        "--max-time", "100", "--user", "\(portal.id):\(portal.secret)",
        server.url + "/oauth/api/v4/authenticate/user/alice/enabled"
      ).status
    }
    let requests = (0..<2).map { _ in Task(executorPreference: BlockingThreads.shared) { try status() } }
    let waiting =
      "SELECT COUNT(*) > 0 FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
    try await eventually("a request waits for the lock") {
      try TestPostgreSQL.query(waiting, in: url) == "t\n" ? () : nil
    }
    let operations = try OperationsTests.address(of: server)
    // The metrics also the second time, while the first one still reads.
    let replies = ["/readyz", "/metrics", "/metrics"].map { try? server.curl("--max-time", "30", operations + $0) }
    for request in requests { #expect(try await request.finished() == 503) }
    let last = Task(executorPreference: BlockingThreads.shared) { try? status() }
    try await Task.sleep(for: .milliseconds(300))
    let start = ContinuousClock.now
    #expect(server.stop() == 0)
    let time = ContinuousClock.now - start
    try await last.finished()
    return replies.allSatisfy { $0?.status == 200 }
      && replies.dropFirst().allSatisfy { $0?.text.contains("token_server_database_waiting ") == true }
      && time < .seconds(10)
  }

  @Test("Without the database a command fails, and a server waits until it is stopped; both name it without a password")
  func unreachable() async throws {
    let directory = try ServerDirectories.new(onPostgreSQL: true)
    defer { try? FileManager.default.removeItem(atPath: directory) }
    let file = directory + "/config.toml"
    let url = try #require(TestDeployment.database(of: directory))
    try String(contentsOfFile: file, encoding: .utf8)
      .replacingOccurrences(of: url, with: "postgresql://nobody:secret@127.0.0.1:1/none")
      .write(toFile: file, atomically: true, encoding: .utf8)
    let output = try serverProgram("user", "add", "bob", "--directory", directory)
    #expect(output.status == 1 && output.errors.contains("127.0.0.1") && !output.errors.contains("secret"))
    let server = try serve(directory)
    try await eventually("the server waits") { try logged(directory).contains("127.0.0.1") }
    server.send(SIGTERM)
    #expect(server.waitForEnd() == SIGTERM)
    #expect(try !logged(directory).contains("secret"))
  }

  private func serve(_ directory: String) throws -> RunningProgram {
    try RunningProgram(
      BuiltProgram.path("token-server"), ["serve", "--directory", directory, "--port", "0"], errors: directory + "/log")
  }

  private func logged(_ directory: String) throws -> String {
    try String(contentsOfFile: directory + "/log", encoding: .utf8)
  }

  @Test("A server that is started before its database waits for it, and then serves")
  func laterDatabase() async throws {
    let directory = try ServerDirectories.new(onPostgreSQL: true)
    let url = try #require(TestDeployment.database(of: directory))
    // The server looks for the database's socket in another directory, where it is not yet.
    let sockets = NSTemporaryDirectory() + "later-\(UUID().uuidString.prefix(8))"
    defer {
      TestPostgreSQL.drop(url)
      for path in [directory, sockets] { try? FileManager.default.removeItem(atPath: path) }
    }
    let host = try #require(url.components(separatedBy: "host=").last?.components(separatedBy: "&").first)
    let socket = "/.s.PGSQL.\(url.components(separatedBy: "port=").last ?? "")"
    try FileManager.default.createDirectory(atPath: sockets, withIntermediateDirectories: false)
    let file = directory + "/config.toml"
    try String(contentsOfFile: file, encoding: .utf8).replacingOccurrences(of: host, with: sockets)
      .write(toFile: file, atomically: true, encoding: .utf8)
    let server = try serve(directory)
    try await eventually("the server waits") { try logged(directory).contains("the database cannot be used yet") }
    try FileManager.default.createSymbolicLink(atPath: sockets + socket, withDestinationPath: host + socket)
    #expect(server.nextLine()?.hasPrefix("listening on https://") == true)
    let lines = try logged(directory).split(separator: "\n").filter { $0.contains("the database can") }
    #expect(lines.count == 2, "\(lines)")
    server.send(SIGTERM)
    #expect(server.waitForEnd() == 0)
  }

  @Test("A running server whose database is away: 503, not ready; then it answers again") func away() async throws {
    let directory = try ServerDirectories.new(onPostgreSQL: true)
    let file = directory + "/config.toml"
    try String(contentsOfFile: file, encoding: .utf8)
      .replacingOccurrences(of: "[database]\n", with: "[operations]\nport = 0\n[database]\n")
      .write(toFile: file, atomically: true, encoding: .utf8)
    let server = try TokenServerProcess(directory: directory, servers: 1)
    let portal = try server.addPortal()
    let url = try #require(TestDeployment.database(of: directory))
    let name = try #require(url.split(separator: "?").first?.split(separator: "/").last)
    let other = try TestPostgreSQL.newDatabase()
    defer { TestPostgreSQL.drop(other) }
    let ready = try OperationsTests.address(of: server) + "/readyz"
    func status() throws -> Int {
      try server.curl(
        "--user", "\(portal.id):\(portal.secret)", server.url + "/oauth/api/v4/authenticate/user/alice/enabled"
      ).status
    }
    #expect(try status() == 200)
    try TestPostgreSQL.query("ALTER DATABASE \(name) ALLOW_CONNECTIONS false", in: other)
    try TestPostgreSQL.query(
      "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '\(name)'", in: other)
    #expect(try status() == 503)
    let refusal = try server.curl(ready)
    #expect(refusal.status == 503 && refusal.text.contains("the database cannot be read"))
    try TestPostgreSQL.query("ALTER DATABASE \(name) ALLOW_CONNECTIONS true", in: other)
    try await eventually("the database is used again") { try status() == 200 }
    // With its next heartbeat, if the last one is old by now.
    try await eventually("ready again") { try server.curl(ready).status == 200 }
    // As a standby, to which a balancer must send nothing.
    try TestPostgreSQL.query("ALTER DATABASE \(name) SET default_transaction_read_only = on", in: other)
    try TestPostgreSQL.query(
      "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '\(name)'", in: other)
    try await eventually("not ready") {
      let refusal = try server.curl(ready)
      return refusal.status == 503 && refusal.text.contains("the database cannot be changed")
    }
    try TestPostgreSQL.query("ALTER DATABASE \(name) RESET default_transaction_read_only", in: other)
    try TestPostgreSQL.query(
      "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '\(name)'", in: other)
    try await eventually("ready again") { try server.curl(ready).status == 200 }
  }
}
