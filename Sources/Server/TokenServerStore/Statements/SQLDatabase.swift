// SPDX-License-Identifier: Apache-2.0

/// A database in terms of statements and rows: all that the store needs of one. Several processes may use the same
/// database at the same time.
///
/// A closure runs in one database transaction and is synchronous. It must only use the transaction, because an
/// implementation may run it again after a conflict with another process. A change, and a read over the network, blocks
/// a thread of the implementation; a read of a local file runs on the thread of the caller.
protocol SQLDatabase: Sendable {
  /// Runs `body` on one consistent state of the database.
  func read<Value: Sendable>(_ body: @escaping @Sendable (any SQLTransaction) throws -> Value) async throws -> Value

  /// Runs `change`, and returns when it is durable. An error of `change` rolls it back.
  /// - Parameter isUrgent: false lets the change wait up to 50 ms, to share the commit of another one.
  /// - Throws: `StorageUnavailableError`, or the error of `change`.
  func write<Value: Sendable>(
    isUrgent: Bool, _ change: @escaping @Sendable (any SQLTransaction) throws -> Value
  ) async throws -> Value

  /// As `write`, for a change of exactly one statement. If the connection to the database is lost meanwhile,
  /// it may run again after it was committed.
  func writeStatement<Value: Sendable>(
    isUrgent: Bool, _ change: @escaping @Sendable (any SQLTransaction) throws -> Value
  ) async throws -> Value

  /// The number of transactions that wait for a connection or for the end of others.
  var waiting: Int { get }

  /// Nil for a file.
  var connections: ConnectionCounts? { get }

  /// Closes all connections; no other call may follow.
  func close()
}

/// The connections of one server to its database.
package struct ConnectionCounts: Sendable, Equatable {
  /// Those that run a transaction, or are opened for one.
  package var used = 0
  /// Those that are open and wait for a transaction.
  package var idle = 0
}

/// One open database transaction. Parameters are bound to the `?` of a statement, in order.
protocol SQLTransaction {
  var dialect: SQLDialect { get }

  /// At the end of a query: locks the rows, and leaves out those that another server works on, or waits until it has.
  var lockingRows: String { get }

  /// Runs one statement. Its text is constant, so an implementation may prepare it once for each connection.
  /// - Returns: the number of changed rows.
  func execute(_ statement: String, _ parameters: [any SQLParameter]) throws -> Int

  /// Runs one query, or one change with `RETURNING`.
  /// - Parameter visit: called for each row; returns false to stop.
  func query(_ statement: String, _ parameters: [any SQLParameter], _ visit: (any SQLRow) throws -> Bool) throws
}

/// A row of a result. It remains valid after the query.
protocol SQLRow {
  /// The value of a column that the query selects.
  func value(of column: String) -> SQLValue
  /// All columns in their order.
  var columns: [(name: String, value: SQLValue)] { get }
}

/// An error of a statement or of the connection.
package protocol SQLError: Error {
  /// The engine's code and message, without the values of the statement.
  var cause: String { get }
}

/// A text contains U+0000, which the database cannot store, and so does not have.
package struct UnstorableTextError: Error {}

extension String {
  /// - Throws: `UnstorableTextError` for a text with U+0000.
  var storable: String {
    get throws {
      guard !utf8.contains(0) else { throw UnstorableTextError() }
      return self
    }
  }
}

/// Nothing can be stored or read for a reason that is independent of the request: the disk is full, failing or
/// read-only, or the database is locked or out of reach.
package struct StorageUnavailableError: Error, CustomStringConvertible {
  /// The reason without any data of the statement.
  package let reason: String
  /// The error of the database library.
  package let description: String
  /// Whether it can end while the program stays the same.
  package var mayPass = true

  /// Too many at once: no fault of the database.
  package static func busy(_ description: String) -> Self { Self(reason: busyReason, description: description) }
  package var isBusy: Bool { reason == Self.busyReason }

  private static let busyReason = "busy"

  /// The database has migrations that this program does not know.
  static let laterVersion = Self(
    reason: "later version", description: "the database was changed by a later version of token-server: update it",
    mayPass: false)
}
