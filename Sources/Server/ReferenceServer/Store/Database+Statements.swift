// SPDX-License-Identifier: Apache-2.0
import GRDB

/// Statements are fixed text, so each is prepared once per connection.
extension Database {
  /// - Returns: the number of changed rows.
  @discardableResult
  func run(_ sql: String, _ arguments: StatementArguments = StatementArguments()) throws -> Int {
    try cachedStatement(sql: sql).execute(arguments: arguments)
    return changesCount
  }

  func row(_ sql: String, _ arguments: StatementArguments = StatementArguments()) throws -> Row? {
    try Row.fetchOne(cachedStatement(sql: sql), arguments: arguments)
  }

  func rows(_ sql: String, _ arguments: StatementArguments = StatementArguments()) throws -> [Row] {
    try Row.fetchAll(cachedStatement(sql: sql), arguments: arguments)
  }
}
