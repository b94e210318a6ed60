import Glibc
import SQLite

/// A directory with at most one database in it, gone when the test lets go.
final class Playground {
  let path: String
  var database: String { "\(path)/test.sqlite3" }

  init() throws {
    var template = Array("/tmp/sqlite-tests-XXXXXX".utf8CString)
    guard mkdtemp(&template) != nil else { throw SQLiteError(call: "mkdtemp", code: errno, message: "in /tmp") }
    path = String(decoding: template.dropLast().map(UInt8.init(bitPattern:)), as: UTF8.self)
  }

  deinit {
    for suffix in ["", "-journal"] { unlink(database + suffix) }
    rmdir(path)
  }

  func connection() throws -> Connection { try Connection(path: database) }
}
