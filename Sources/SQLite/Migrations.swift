import CSQLite

extension Connection {
  /// Brings the file from the format it has (`user_version`, 0 when new) to the newest, in one transaction.
  /// - Parameter steps: the first makes format 1 of an empty file, the next makes format 2 of format 1, …
  /// - Throws: `SQLiteError` also if the file's format is newer than the last step; the file is then untouched.
  public func migrate(_ steps: [(borrowing Connection) throws -> Void]) throws {
    // Looked at without the write lock first: nearly always there is nothing to do.
    guard try formatVersion() != steps.count else { return }
    try transaction { connection in
      let version = try connection.formatVersion()
      guard version >= 0, version <= steps.count else {
        throw SQLiteError(
          call: "migrate", code: SQLITE_SCHEMA,
          message: "the file has format \(version), this program knows formats up to \(steps.count)")
      }
      for step in steps[version...] { try step(connection) }
      try connection.execute("PRAGMA user_version = \(steps.count)")
    }
  }

  /// - Throws: `SQLiteError` unless the file has the format that the last step makes.
  public func requireFormat(_ newest: Int) throws {
    let version = try formatVersion()
    guard version == newest else {
      throw SQLiteError(
        call: "open", code: SQLITE_SCHEMA,
        message:
          "the file has format \(version), this program reads format \(newest); `approval-token serve` brings an "
          + "older one to it")
    }
  }

  func formatVersion() throws -> Int {
    try rows("PRAGMA user_version") { Int(try $0.integer(0)) }.first ?? 0
  }
}
