// SPDX-License-Identifier: Apache-2.0
import Glibc
import SQLite

/// A directory for one database, removed with its last reference.
final class DatabaseFixture {
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
