import GRDB

/// The database: one SQLite file, many readers, one writer. A committed change survives a power cut
/// (`synchronous=FULL`); commands in other processes write to the same file meanwhile.
struct Store: Sendable {
  let pool: DatabasePool
  let writes: WriteQueue

  init(path: String) throws {
    var configuration = Configuration()
    configuration.busyMode = .timeout(5)
    configuration.maximumReaderCount = 4
    pool = try DatabasePool(path: path, configuration: configuration)
    // GRDB leaves a WAL database at NORMAL, which may lose the last commits in a power cut.
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
