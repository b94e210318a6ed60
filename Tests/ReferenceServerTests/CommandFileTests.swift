// SPDX-License-Identifier: Apache-2.0
import BuiltPrograms
import Foundation
import ServerTestSupport
import Testing

/// The files that commands leave when they fail.
@Suite(.timeLimit(.minutes(5)), .mayBlock) struct CommandFileTests {
  /// Runs `body` with the directory of a new server, and an empty directory for files.
  private func withServer(
    onPostgreSQL: Bool, _ body: (_ server: String, _ folder: String) throws -> Void
  ) throws {
    let server = try ServerDirectories.new(onPostgreSQL: onPostgreSQL)
    let folder = NSTemporaryDirectory() + "files-\(UUID().uuidString)"
    defer {
      if let database = TestDeployment.database(of: server) { TestPostgreSQL.drop(database) }
      for path in [server, folder] { try? FileManager.default.removeItem(atPath: path) }
    }
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: false)
    try body(server, folder)
  }

  private func files(in folder: String) throws -> [String] {
    try FileManager.default.contentsOfDirectory(atPath: folder).sorted()
  }

  /// The arguments of a command that adds a fleet token, and writes one file.
  private func addition(to server: String, _ folder: String) -> [String] {
    ["fleet-token", "add", "bench", "--uri", folder + "/bench.uri", "--directory", server]
  }

  @Test("A command leaves no file and no directory if the database is locked") func locked() throws {
    let program = try BuiltProgram.path("token-server")
    try withServer(onPostgreSQL: false) { server, folder in
      let list = server + "/list.csv"
      try "user,host\nalice,a-1\n".write(toFile: list, atomically: true, encoding: .utf8)
      let commands = [
        addition(to: server, folder), ["fleet", list, "--output", folder + "/out", "--directory", server],
      ]
      let database = try DatabaseFile(server + "/token-server.db")
      try database.execute("BEGIN IMMEDIATE")
      // At the same time: each waits five seconds for the lock.
      let running = try commands.map { try RunningProgram(program, $0, errors: "\(server)/\($0[0]).log") }
      for (command, running) in zip(commands, running) {
        #expect(running.waitForEnd() == 1)
        let errors = try String(contentsOfFile: "\(server)/\(command[0]).log", encoding: .utf8)
        #expect(errors.contains("database is locked"), "\(errors)")
      }
      #expect(try files(in: folder) == [])
      try database.execute("ROLLBACK")
      for command in commands { #expect(try run(program, command).status == 0) }
      #expect(try files(in: folder) == ["bench.uri", "out"])
    }
  }

  @Test("If the files of a board cannot be written, no code is stored, no file is left") func partOfAFleet() throws {
    let program = try BuiltProgram.path("token-server")
    try withServer(onPostgreSQL: false) { server, folder in
      let list = server + "/list.csv"
      // The path of the second board is too long.
      let long = String(repeating: "b", count: 63)
      try "user,host\ncarol,a\ndave,\(long)\n".write(toFile: list, atomically: true, encoding: .utf8)
      var parent = folder
      while parent.utf8.count < 3790 { parent += "/" + String(repeating: "d", count: 200) }
      try FileManager.default.createDirectory(atPath: parent, withIntermediateDirectories: true)
      let output = parent + "/" + String(repeating: "e", count: 4040 - parent.utf8.count - 1)
      let failed = try run(program, ["fleet", list, "--output", output, "--directory", server])
      #expect(failed.status == 1 && failed.errors.contains("File name too long"), "\(failed.errors)")
      #expect(try files(in: parent) == [])
      let delete = try run(program, ["user", "delete", "carol", "--directory", server])
      #expect(delete.status == 1 && delete.errors.contains("there is no user carol"), "\(delete.errors)")
    }
  }

  @Test("The directory of an interrupted init is named") func interruptedInit() throws {
    let program = try BuiltProgram.path("token-server")
    try withServer(onPostgreSQL: false) { _, folder in
      let draft = folder + "/server.new-0123abcd"
      try FileManager.default.createDirectory(atPath: draft, withIntermediateDirectories: false)
      try FileManager.default.createDirectory(atPath: folder + "/server.new-host", withIntermediateDirectories: false)
      let made = try run(program, ["init", "--directory", folder + "/server"])
      #expect(!made.errors.contains("new-host"), "\(made.errors)")
      #expect(made.status == 0 && made.errors.contains("warning: \(draft) is of an init"), "\(made.errors)")
      let other = try run(program, ["init", "--directory", folder + "/other"])
      #expect(other.status == 0 && other.errors.isEmpty, "\(other.errors)")
      #expect(try files(in: folder) == ["other", "server", "server.new-0123abcd", "server.new-host"])
    }
  }

  @Test("The name of an existing fleet token leaves no file") func existing() throws {
    let program = try BuiltProgram.path("token-server")
    try withServer(onPostgreSQL: false) { server, folder in
      #expect(try run(program, ["fleet-token", "add", "bench", "--directory", server]).status == 0)
      let again = try run(program, addition(to: server, folder))
      #expect(again.status == 1 && again.errors.contains("already exists"), "\(again.errors)")
      #expect(try files(in: folder) == [])
    }
  }

  @Test("The file is kept if the connection to the database is lost during the commit") func lostCommit() throws {
    try withServer(onPostgreSQL: true) { server, folder in
      let url = try #require(TestDeployment.database(of: server))
      // Called during the commit.
      try TestPostgreSQL.query(
        """
        CREATE FUNCTION lose() RETURNS trigger LANGUAGE plpgsql AS
        'BEGIN PERFORM pg_terminate_backend(pg_backend_pid()); RETURN NULL; END'
        """, in: url)
      try TestPostgreSQL.query(
        """
        CREATE CONSTRAINT TRIGGER lose AFTER INSERT ON fleet_token DEFERRABLE INITIALLY DEFERRED
        FOR EACH ROW EXECUTE FUNCTION lose()
        """, in: url)
      let lost = try run(BuiltProgram.path("token-server"), addition(to: server, folder))
      #expect(lost.status == 1 && lost.errors.contains("may be stored nevertheless"), "\(lost.errors)")
      #expect(try files(in: folder) == ["bench.uri"])
    }
  }

  @Test("A file that cannot be written in full is not left") func partOfAFile() throws {
    let program = try BuiltProgram.path("token-server")
    // A database in files could not be written either.
    try withServer(onPostgreSQL: true) { server, folder in
      for isLimited in [true, false] {
        let shell = "trap '' XFSZ; \(isLimited ? "ulimit -f 0; " : "")exec \"$0\" \"$@\" >/dev/null 2>&1"
        let status = try run("/bin/sh", ["-c", shell, program] + addition(to: server, folder)).status
        let left = try files(in: folder)
        #expect(status == (isLimited ? 1 : 0))
        #expect(left == (isLimited ? [] : ["bench.uri"]))
      }
    }
  }
}
