// SPDX-License-Identifier: Apache-2.0
import ArgumentParser
import Foundation
import Glibc
import TokenServerCore
import TokenServerStore

struct MigrateCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "migrate",
    abstract: "Copy the database of a stopped server into an empty PostgreSQL database, and compare every row.",
    discussion: """
      The file token-server.db stays as it is. To use the copy, add the printed [database] table to config.toml. From \
      then on the file is out of date: never let a server use it again.
      """)

  @OptionGroup var options: CommonOptions

  @Option(help: "postgresql://USER[:PASSWORD]@HOST/DATABASE")
  var to: String

  private struct Migrated: Encodable {
    var to: String
    var rows: [String: Int]
  }

  func run() async throws {
    let directory = options.serverDirectory
    let address = try PostgreSQLAddress(to)
    guard try directory.configuration().database == nil else {
      throw CommandError("the server in \(directory.path) uses a PostgreSQL database already")
    }
    let lock = try directory.lockForServing()
    defer { close(lock) }
    let (source, target) = (try await directory.openStore(nil), try Store(address, connections: 1))
    let rows = try await source.copy(to: target) { table, count in
      if isatty(STDERR_FILENO) == 1 { complain("  \(table): \(count) rows") }
    }
    source.close()
    target.close()
    try options.print(
      Migrated(to: address.publicName, rows: rows),
      """
      copied \(rows.values.reduce(0, +)) rows to \(address.publicName), and found each of them there
      next, in \(directory.configurationFile):
        [database]
        url = "…" (the URL that you gave)
      """)
  }
}
