// SPDX-License-Identifier: Apache-2.0
import TokenServerCore

/// The records of the server in one database transaction. Its extensions contain all SQL of the server, except for the
/// schema.
package struct Database: ServerRecords {
  let transaction: any SQLTransaction

  init(_ transaction: any SQLTransaction) { self.transaction = transaction }

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
