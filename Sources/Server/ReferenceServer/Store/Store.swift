// SPDX-License-Identifier: Apache-2.0
import GRDB

/// The database: one SQLite file, many readers, one writer. A committed change survives a power loss
/// (`synchronous=FULL`); commands in other processes may write to the same file at the same time.
struct Store: Sendable {
  let pool: DatabasePool
  let writes: WriteQueue

  init(path: String) throws {
    var configuration = Configuration()
    configuration.busyMode = .timeout(5)
    configuration.maximumReaderCount = 4
    pool = try DatabasePool(path: path, configuration: configuration)
    // GRDB leaves a WAL database at NORMAL, which may lose the last commits at a power loss.
    try pool.writeWithoutTransaction { try $0.execute(sql: "PRAGMA synchronous = FULL") }
    try Schema.migrator.migrate(pool)
    writes = WriteQueue(pool)
  }

  func read<Value: Sendable>(_ body: @escaping @Sendable (Database) throws -> Value) async throws -> Value {
    try await pool.read(body)
  }

  func write<Value: Sendable>(_ change: @escaping @Sendable (Database) throws -> Value) async throws -> Value {
    try await writes.write(change)
  }
}
