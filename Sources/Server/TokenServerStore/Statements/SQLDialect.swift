// SPDX-License-Identifier: Apache-2.0

/// The few places in which the database engines need different SQL.
enum SQLDialect: Sendable {
  case sqlite
  /// PostgreSQL 15 or later. What is known of others that speak its protocol is in docs/operations.md.
  case postgreSQL

  /// A subquery with the texts of a parameter, which is a JSON list of strings.
  var textsOfList: String {
    switch self {
    case .sqlite: "SELECT value FROM json_each(?)"
    case .postgreSQL: "SELECT json_array_elements_text(CAST(? AS JSON))"
    }
  }

  /// An aggregate: the texts of a group as a JSON list of strings.
  func list(of text: String) -> String {
    switch self {
    case .sqlite: "json_group_array(\(text))"
    case .postgreSQL: "COALESCE(CAST(json_agg(\(text)) AS TEXT), '[]')"
    }
  }

  /// Whether a column contains text: in a damaged SQLite file it may contain anything.
  func isText(_ column: String) -> String {
    switch self {
    case .sqlite: "typeof(\(column)) = 'text'"
    case .postgreSQL: "TRUE"
    }
  }

  /// A query for the size of the database in bytes, as `count`, without what its log contains.
  var size: String {
    switch self {
    case .sqlite: "SELECT page_count * page_size AS count FROM pragma_page_count(), pragma_page_size()"
    case .postgreSQL: "SELECT pg_database_size(current_database()) AS count"
    }
  }
}
