// SPDX-License-Identifier: Apache-2.0
import CSQLite

/// A failed call of SQLite.
package struct SQLiteError: Error, Equatable, Sendable, CustomStringConvertible {
  /// The operation ("open", "prepare", "step" …) and the SQL or path. Contains no bound values.
  package let call: String
  /// SQLite's extended result code, https://sqlite.org/rescode.html
  package let code: Int32
  package let message: String

  package init(call: String, code: Int32, message: String) {
    self.call = call
    self.code = code
    self.message = message
  }

  package var description: String { "\(call): \(message) (SQLite \(code))" }

  /// Whether the contents of the file are damaged, as opposed to an error of the disk, another process, or the caller.
  package var isDamage: Bool { [SQLITE_CORRUPT, SQLITE_NOTADB, SQLITE_MISMATCH].contains(code & 0xFF) }

  /// Whether the error is independent of the statement: the disk is full, failing or read-only, the file is locked, or
  /// memory is used up.
  package var isOfTheDisk: Bool {
    [
      SQLITE_FULL, SQLITE_IOERR, SQLITE_READONLY, SQLITE_CANTOPEN, SQLITE_BUSY, SQLITE_LOCKED, SQLITE_NOMEM,
    ].contains(code & 0xFF)
  }
}
