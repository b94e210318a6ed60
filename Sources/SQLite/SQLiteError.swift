// SPDX-License-Identifier: Apache-2.0
import CSQLite

/// A failed call of SQLite.
public struct SQLiteError: Error, Equatable, Sendable, CustomStringConvertible {
  /// The operation ("open", "prepare", "step" …) and the SQL or path. Contains no bound values.
  public let call: String
  /// SQLite's extended result code, https://sqlite.org/rescode.html
  public let code: Int32
  public let message: String

  public init(call: String, code: Int32, message: String) {
    self.call = call
    self.code = code
    self.message = message
  }

  public var description: String { "\(call): \(message) (SQLite \(code))" }

  /// Whether the contents of the file are damaged, as opposed to an error of the disk, another process, or the caller.
  public var isDamage: Bool { [SQLITE_CORRUPT, SQLITE_NOTADB, SQLITE_MISMATCH].contains(code & 0xFF) }
}
