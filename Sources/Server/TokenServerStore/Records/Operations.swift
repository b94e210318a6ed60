// SPDX-License-Identifier: Apache-2.0
/// What the metrics report.
extension Database {
  package func openTransactionCount() throws -> Int {
    try row("SELECT COUNT(*) AS count FROM mobile_auth_transaction WHERE state = 'open'")
      .map { try $0.count("count") } ?? 0
  }

  package func waitingCallbackCount() throws -> Int {
    try row("SELECT COUNT(*) AS count FROM callback").map { try $0.count("count") } ?? 0
  }

  /// The size of the database, in bytes, without what its log contains.
  package func size() throws -> Int {
    try row(dialect.size).map { try $0.size("count") } ?? 0
  }
}
