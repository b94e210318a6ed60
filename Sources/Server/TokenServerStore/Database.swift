// SPDX-License-Identifier: Apache-2.0
import TokenServerCore

/// The records of the server in one database transaction. Its extensions contain all SQL of the server, except for the
/// schema.
package struct Database: ServerRecords {
  let transaction: any SQLTransaction
  /// How much the clock of servers that share the database is ahead of this server's: zero, or as it was last measured.
  let clockDifference: Duration

  init(_ transaction: any SQLTransaction, clockDifference: Duration = .zero) {
    self.transaction = transaction
    self.clockDifference = clockDifference
  }

  var dialect: SQLDialect { transaction.dialect }

  /// The result of a part of the transaction.
  /// - Throws: an error of the database itself, which ends the transaction, or causes its repetition.
  package func result<Value>(of body: () throws -> Value) throws -> Result<Value, any Error> {
    do { return .success(try body()) } catch let error as any SQLError { throw error } catch { return .failure(error) }
  }

  /// - Returns: the number of changed rows.
  @discardableResult
  func run(_ statement: String, _ parameters: [any SQLParameter] = []) throws -> Int {
    try transaction.execute(statement, parameters)
  }

  /// Deletes at most `Self.batch` rows, so that no statement and no transaction takes long.
  /// - Parameters:
  ///   - key: the columns of the table's primary key; like its name a constant of the code.
  ///   - condition: of the rows to delete.
  /// - Returns: whether there may be more.
  func deleteBatch(of table: String, _ key: String, where condition: String, _ parameters: [any SQLParameter]) throws
    -> Bool
  {
    let rows = "SELECT \(key) FROM \(table) WHERE \(condition) LIMIT \(Self.batch)"
    return try run("DELETE FROM \(table) WHERE (\(key)) IN (\(rows))", parameters) == Self.batch
  }

  static var batch: Int { 2000 }

  /// - Returns: the first row; nil if there is none.
  func row(_ query: String, _ parameters: [any SQLParameter] = []) throws -> (any SQLRow)? {
    var first: (any SQLRow)?
    try transaction.query(query, parameters) { row in
      first = row
      return false
    }
    return first
  }

  func rows(_ query: String, _ parameters: [any SQLParameter] = []) throws -> [any SQLRow] {
    var rows: [any SQLRow] = []
    try transaction.query(query, parameters) { row in
      rows.append(row)
      return true
    }
    return rows
  }
}
