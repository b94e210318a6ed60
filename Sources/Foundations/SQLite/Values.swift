// SPDX-License-Identifier: Apache-2.0
import CSQLite

/// The types of a statement's parameters: `Int64`, `Double`, `String`, `[UInt8]`, or nil.
package protocol Bindable {
  /// - Returns: SQLite's result code.
  func bind(to statement: OpaquePointer, at index: Int32) -> Int32
}

extension Int64: Bindable {
  package func bind(to statement: OpaquePointer, at index: Int32) -> Int32 {
    sqlite3_bind_int64(statement, index, self)
  }
}

extension Double: Bindable {
  package func bind(to statement: OpaquePointer, at index: Int32) -> Int32 {
    sqlite3_bind_double(statement, index, self)
  }
}

extension String: Bindable {
  package func bind(to statement: OpaquePointer, at index: Int32) -> Int32 {
    var copy = self
    return copy.withUTF8 { utf8 in
      // A null pointer would bind NULL, and an empty string may have one.
      guard let address = utf8.baseAddress else { return approval_sqlite3_bind_text(statement, index, "", 0) }
      return address.withMemoryRebound(to: CChar.self, capacity: utf8.count) {
        guard let count = Int32(exactly: utf8.count) else { return SQLITE_TOOBIG }
        return approval_sqlite3_bind_text(statement, index, $0, count)
      }
    }
  }
}

extension [UInt8]: Bindable {
  package func bind(to statement: OpaquePointer, at index: Int32) -> Int32 {
    guard !isEmpty else { return sqlite3_bind_zeroblob(statement, index, 0) }
    guard let count = Int32(exactly: count) else { return SQLITE_TOOBIG }
    return approval_sqlite3_bind_blob(statement, index, self, count)
  }
}

extension Optional: Bindable where Wrapped: Bindable {
  package func bind(to statement: OpaquePointer, at index: Int32) -> Int32 {
    self?.bind(to: statement, at: index) ?? sqlite3_bind_null(statement, index)
  }
}
