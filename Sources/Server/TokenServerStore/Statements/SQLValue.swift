// SPDX-License-Identifier: Apache-2.0
import TokenServerCore

/// The value of a column or a parameter.
enum SQLValue: Sendable, Hashable {
  case null
  case integer(Int64)
  case real(Double)
  case text(String)
  case blob([UInt8])
}

/// A type whose values can be parameters of a statement.
protocol SQLParameter {
  var sqlValue: SQLValue { get }
}

extension SQLValue: SQLParameter {
  var sqlValue: SQLValue { self }
}

extension String: SQLParameter {
  var sqlValue: SQLValue { .text(self) }
}

extension Int: SQLParameter {
  var sqlValue: SQLValue { .integer(Int64(self)) }
}

extension Int64: SQLParameter {
  var sqlValue: SQLValue { .integer(self) }
}

/// 0 or 1.
extension Bool: SQLParameter {
  var sqlValue: SQLValue { .integer(self ? 1 : 0) }
}

extension Array: SQLParameter where Element == UInt8 {
  var sqlValue: SQLValue { .blob(self) }
}

extension Optional: SQLParameter where Wrapped: SQLParameter {
  var sqlValue: SQLValue { self?.sqlValue ?? .null }
}

/// Milliseconds since 1970.
extension Timestamp: SQLParameter {
  var sqlValue: SQLValue { .integer(milliseconds) }
}

extension UserID: SQLParameter {
  var sqlValue: SQLValue { .text(text) }
}

extension ClientID: SQLParameter {
  var sqlValue: SQLValue { .text(text) }
}

extension ProfileID: SQLParameter {
  var sqlValue: SQLValue { .text(text) }
}
