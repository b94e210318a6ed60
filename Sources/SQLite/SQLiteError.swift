import CSQLite

/// A call into SQLite that did not do what was asked.
public struct SQLiteError: Error, Equatable, Sendable, CustomStringConvertible {
  /// What was being done: "open", "prepare", "step" … and the SQL or path, which never holds a value.
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

  /// Whether the file's contents are to blame rather than the disk, another process, or the caller.
  public var isDamage: Bool { [SQLITE_CORRUPT, SQLITE_NOTADB, SQLITE_MISMATCH].contains(code & 0xFF) }
}
