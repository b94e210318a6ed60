// SPDX-License-Identifier: Apache-2.0

/// An error that the database reports, or the loss of the connection.
struct PostgreSQLError: SQLError, CustomStringConvertible {
  /// Five characters (PostgreSQL's manual, appendix A); empty if the connection is lost.
  let state: String
  /// The database's message without the values of the statement.
  let message: String

  package var cause: String { description }

  var description: String { state.isEmpty ? message : "\(message) (SQLSTATE \(state))" }

  /// The transaction conflicted with another one and can be repeated.
  var isConflict: Bool { state == "40001" || state == "40P01" }

  /// In a transaction: a prepared statement is older than a change of its table, which a later version of the program
  /// made. At the beginning of one: the database is a standby, which has no serializable transactions.
  var isUnsupported: Bool { state == "0A000" }

  /// The database is a standby, or was made read-only.
  var isReadOnly: Bool { state == "25006" }

  /// The database, or the way to it, has failed.
  var isUnavailable: Bool {
    // Connection, resources, operator intervention (shutdown, time limit), system errors; a read-only database, a lock,
    // and a commit of which the database does not know whether it happened (CockroachDB).
    state.isEmpty || ["08", "53", "57", "58"].contains(state.prefix(2)) || isReadOnly
      || ["55P03", "40003"].contains(state)
  }

  /// A statement names a table that the database does not have.
  var isMissingTable: Bool { state == "42P01" }

  /// Another server creates the same tables or columns at the same time.
  var isConcurrentCreation: Bool { ["23505", "42701", "42P07", "42710", "XX000"].contains(state) || isConflict }

  var asStorageError: any Error { isUnavailable || isConflict ? unavailable : self }

  var unavailable: StorageUnavailableError {
    // A statement of a migration has no time limit: an operator has canceled it, and would have to do so each time.
    StorageUnavailableError(
      reason: state.isEmpty ? "no connection" : "SQLSTATE \(state)", description: description, mayPass: state != "57014"
    )
  }
}
