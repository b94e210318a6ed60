// SPDX-License-Identifier: Apache-2.0
import BuiltPrograms
import Cryptography
import Foundation
import ReferenceProtocol
import ServerTestSupport
import Testing

/// The commands of docs/operations.md for a backup of the database, and what servers and tokens have after it.
@Suite(.timeLimit(.minutes(10)), .serialized) struct BackupTests {
  private static let configuration = """
    [application]
    pin = true
    max_pin_attempts = 3
    [[type]]
    name = "payment"
    method = "push_with_pin"
    request_expires_in = 600
    messages = { en = "Pay?" }
    """

  @Test("After a restoration tokens work, and exactly the PIN attempts since the backup are forgotten")
  func restoration() throws {
    let server = try TokenServerProcess(configuration: Self.configuration, servers: 2)
    let portal = try server.addPortal()
    let device = try DeviceClient.enrolledWithPIN(at: server, as: "alice")
    let answered = try server.begin("payment", on: device, as: portal)
    let key = Random.uuid()
    let answer = try device.answerWithPIN(device.fetch(answered))
    let receipt = try device.send(answer, to: answered, key: key).expect(200).body
    let open = try server.begin("payment", on: device, as: portal)
    #expect(try wrongPIN(device) == [3, 1, 2])

    let url = try #require(TestDeployment.database(of: server.directory))
    let new = try TestPostgreSQL.newDatabase()
    defer { TestPostgreSQL.drop(url) }
    let variables = "cd '\(server.directory)'; url='\(url)'; new='\(new)'; "
    try perform(variables + documented("pg_dump "))
    #expect(try wrongPIN(device) == [3, 2, 1])
    #expect(server.stop() == 0)
    try perform(variables + documented("pg_restore "))
    let file = server.directory + "/config.toml"
    try String(contentsOfFile: file, encoding: .utf8).replacingOccurrences(of: url, with: new)
      .write(toFile: file, atomically: true, encoding: .utf8)

    let restored = try TokenServerProcess(directory: server.directory, port: server.port, servers: 2)
    let again = DeviceClient(device, at: restored)
    #expect(try wrongPIN(again) == [3, 2, 1])
    #expect(try again.send(answer, to: answered, key: key).body == receipt)
    #expect(try again.pending().map(\.transactionID) == [open])
    for transaction in [open, try restored.begin("payment", on: again, as: portal)] {
      try again.send(again.answerWithPIN(again.fetch(transaction)), to: transaction).expect(200)
    }
    #expect(try restored.result(of: answered, as: portal).isAuthenticated)
    for count in 1...3 { #expect(try wrongPIN(again) == [3, count, 3 - count]) }
    #expect(try again.logInWithPIN().status != 200)
  }

  @Test("The same with SQLite, whose backup is made while the server runs") func restorationOfAFile() throws {
    let directory = try ServerDirectories.new(onPostgreSQL: false)
    let server = try TokenServerProcess(configuration: Self.configuration, directory: directory, servers: 1)
    let portal = try server.addPortal()
    let device = try DeviceClient.enrolledWithPIN(at: server, as: "alice")
    #expect(try wrongPIN(device) == [3, 1, 2])
    try perform("cd '\(directory)'; " + documented("sqlite3 token-server.db \"VACUUM"))
    #expect(try wrongPIN(device) == [3, 2, 1])
    _ = try server.begin("payment", on: device, as: portal)
    #expect(server.stop(killing: true) != 0)
    for command in ["rm --force token-server.db-wal", "cp tokens.db", "sqlite3 token-server.db \"PRAGMA"] {
      let output = try perform("cd '\(directory)'; " + documented(command))
      if command.contains("PRAGMA") { #expect(output == "ok\n") }
    }
    let restored = try TokenServerProcess(directory: directory, port: server.port, servers: 1)
    let again = DeviceClient(device, at: restored)
    #expect(try wrongPIN(again) == [3, 2, 1])
    #expect(try again.pending().map(\.transactionID) == [])
    let next = try restored.begin("payment", on: again, as: portal)
    try again.send(again.answerWithPIN(again.fetch(next)), to: next).expect(200)
    #expect(try restored.result(of: next, as: portal).isAuthenticated)
  }

  /// - Returns: the counts in the response: maximum, previous, remaining.
  private func wrongPIN(_ device: DeviceClient) throws -> [Int?] {
    try device.logInWithPIN(Random.secret(32)).expect(400).counts
  }

  /// The line of the documentation that begins with a command.
  private func documented(_ command: String) throws -> String {
    let file = URL(filePath: #filePath).appending(path: "../../../docs/operations.md").standardized
    let lines = try String(contentsOf: file, encoding: .utf8).split(separator: "\n")
    return String(try #require(lines.first { $0.hasPrefix(command) }))
  }

  /// - Returns: what it printed.
  @discardableResult
  private func perform(_ command: String) throws -> String {
    let output = try run("/bin/sh", ["-c", command])
    guard output.status == 0 else { throw Curl.CurlError(description: "\(command): \(output.errors)") }
    return output.text
  }
}
