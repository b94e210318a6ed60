// SPDX-License-Identifier: Apache-2.0
import BuiltPrograms
import Foundation
import Glibc
import ServerTestSupport
import Testing

@testable import ReferenceServer
@testable import TokenServerCore

/// Files and settings with which the server must not start, or must warn.
@Suite(.timeLimit(.minutes(5)), .mayBlock) struct StartFaultTests {
  private func program(_ arguments: String...) throws -> ProgramOutput {
    try run(BuiltProgram.path("token-server"), arguments)
  }

  private func serve(_ directory: String) throws -> ProgramOutput {
    try program("serve", "--directory", directory, "--port", "0", "--log-level", "error")
  }

  private static func write(_ bytes: [UInt8], to path: String) throws {
    try Data(bytes).write(to: URL(filePath: path))
  }

  @Test("Another server's pepper is refused by the server and by commands, which store nothing with it")
  func wrongPepper() throws {
    let directory = try ServerDirectories.new()
    defer { try? FileManager.default.removeItem(atPath: directory) }
    let right = try Data(contentsOf: URL(filePath: directory + "/pepper"))
    try Self.write([UInt8](repeating: 7, count: 32), to: directory + "/pepper")
    for output in [try serve(directory), try program("api-client", "add", "p", "--directory", directory)] {
      #expect(output.status == 1 && output.bytes.isEmpty)
      #expect(output.errors.contains("\(directory)/pepper is not the pepper of this database"), "\(output.errors)")
      let advice = "load it for this command; otherwise restore pepper and database from the same backup"
      #expect(output.errors.contains(advice), "\(output.errors)")
    }
    let credentials = "CREDENTIALS_DIRECTORY=\(directory)"
    let list = ["api-client", "list", "--directory", directory]
    let withCredentials = try run("/usr/bin/env", [credentials, BuiltProgram.path("token-server")] + list)
    #expect(withCredentials.status == 1 && !withCredentials.errors.contains("for this command"))
    unlink(directory + "/pepper")
    let missing = try program("api-client", "list", "--directory", directory).errors
    #expect(missing.contains("/pepper: No such file or directory; if the pepper is a systemd credential"), "\(missing)")
    try right.write(to: URL(filePath: directory + "/pepper"))
    let clients = try program("api-client", "list", "--json", "--directory", directory)
    #expect(clients.status == 0 && !clients.text.contains("\"p\""), "\(clients.text)")
  }

  @Test(
    "A database file that is empty or no database is named, with the remedy",
    arguments: [
      ("", "/token-server.db is empty: restore it"),
      ("no database ", "/token-server.db: prepare PRAGMA journal_mode = WAL: file is not a database"),
    ])
  func database(part: String, text: String) throws {
    let directory = try ServerDirectories.new(onPostgreSQL: false)
    defer { try? FileManager.default.removeItem(atPath: directory) }
    try Self.write(Array(String(repeating: part, count: 1000).utf8), to: directory + "/token-server.db")
    // A log from before would restore the pages.
    for end in ["-wal", "-shm"] { unlink(directory + "/token-server.db" + end) }
    for output in [try serve(directory), try program("user", "add", "bob", "--directory", directory)] {
      #expect(output.status == 1)
      #expect(output.errors.contains(directory + text), "\(output.errors)")
    }
  }

  @Test(
    "TLS files with wrong contents are named with their settings",
    arguments: [
      ("certificate", "server.key", "server.key, which is tls.certificate, must have certificates in PEM"),
      ("key", "server.pem", "server.pem, which is tls.key, must have a private key in PEM"),
      ("key", "ca.key", "ca.key (tls.key) does not belong to the first certificate"),
      ("certificate", "ca.pem", "does not belong to the first certificate in "),
    ])
  func certificates(setting: String, file: String, text: String) throws {
    let directory = try ServerDirectories.new(onPostgreSQL: false)
    defer { try? FileManager.default.removeItem(atPath: directory) }
    try Self.write(Array("[tls]\n\(setting) = \"\(file)\"\n".utf8), to: directory + "/config.toml")
    let output = try serve(directory)
    #expect(output.status == 1 && output.errors.contains(text), "\(output.errors)")
  }

  @Test(
    "An address for operations that cannot be used is named before the server is ready",
    arguments: [
      ("listen = \"x.invalid\"", "\"operations.listen\" is not an address of this machine: x.invalid"),
      ("port = PORT", "PORT (operations): Address already in use"),
    ])
  func operations(setting: String, text: String) throws {
    let other = try TokenServerProcess(servers: 1)
    let directory = try ServerDirectories.new(onPostgreSQL: false)
    defer { try? FileManager.default.removeItem(atPath: directory) }
    let settings = "[operations]\n\(setting)\n".replacing("PORT", with: "\(other.port)")
    try Self.write(Array(settings.utf8), to: directory + "/config.toml")
    let output = try serve(directory)
    #expect(output.status == 1 && output.bytes.isEmpty, "\(output.text)")
    #expect(output.errors.contains(text.replacing("PORT", with: "\(other.port)")), "\(output.errors)")
  }

  @Test(
    "A port below 1024 that is not permitted is named with the remedy",
    arguments: [
      (443, 9464, EACCES, "Permission denied; a port below 1024 needs the capability CAP_NET_BIND_SERVICE"),
      (8443, 80, EACCES, "Permission denied; a port below 1024 needs the capability CAP_NET_BIND_SERVICE"),
      (8443, 9464, EACCES, "Permission denied"), (443, 9464, EADDRINUSE, "Address already in use"),
    ] as [(Int, Int, Int32, String)])
  func privilegedPort(port: Int, operations: Int, number: Int32, reason: String) {
    var configuration = ServerConfiguration()
    configuration.port = port
    configuration.operations = ServerConfiguration.Operations()
    configuration.operations?.port = operations
    let text = configuration.listenFailure(number)
    let addresses = "127.0.0.1:\(port) or 127.0.0.1:\(operations) (operations)"
    #expect(text.hasPrefix("cannot listen on \(addresses): \(reason)"), "\(text)")
    #expect(text.contains("README.Debian") == reason.contains("CAP_NET_BIND_SERVICE"), "\(text)")
  }

  @Test("Secrets whose modes are for all users are named in a warning") func modes() throws {
    let directory = try ServerDirectories.new()
    try Self.write([UInt8](repeating: 7, count: 32), to: directory + "/pepper.former")
    for file in ["pepper", "pepper.former", "server.key"] { #expect(chmod("\(directory)/\(file)", 0o644) == 0) }
    let server = try TokenServerProcess(directory: directory)
    for file in ["pepper", "pepper.former", "server.key"] {
      #expect(server.log.contains("the mode of \(directory)/\(file) is for all users"), "\(server.log)")
    }
    #expect(server.stop() == 0)
  }
}
