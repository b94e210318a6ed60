// SPDX-License-Identifier: Apache-2.0
import SQLite
import Testing

@Suite("Values in and out", .timeLimit(.minutes(5))) final class ValueTests {
  private let fixture: DatabaseFixture
  private let connection: Connection

  init() throws {
    fixture = try DatabaseFixture()
    connection = try fixture.connection()
    try connection.execute("CREATE TABLE t (x ANY) STRICT")
  }

  @Test("Integers are read back", arguments: [.min, -1, 0, 1, .max] as [Int64])
  func integersAreReadBack(value: Int64) throws {
    try connection.run("INSERT INTO t VALUES (?)", value)
    #expect(try connection.rows("SELECT x FROM t") { try $0.integer(0) } == [value])
  }

  @Test(
    "Strings are read back",
    arguments: [
      ("", 1), ("plain", 1), ("é\u{1F511}", 1), ("nul\u{0}inside", 1), ("'; DROP TABLE t; --", 1), ("x", 70_000),
    ])
  func stringsAreReadBack(text: String, repeats: Int) throws {
    let value = String(repeating: text, count: repeats)
    try connection.run("INSERT INTO t VALUES (?)", value)
    #expect(try connection.rows("SELECT x FROM t") { try $0.text(0) } == [value])
    #expect(try connection.rows("SELECT x FROM t") { try $0.optionalText(0) } == [value])
  }

  @Test("Blobs are read back", arguments: [0, 1, 3, 70_000])
  func blobsAreReadBack(count: Int) throws {
    let value = (0..<count).map { [0, 255, 0][$0 % 3] as UInt8 }
    try connection.run("INSERT INTO t VALUES (?)", value)
    #expect(try connection.rows("SELECT x FROM t") { try $0.blob(0) } == [value])
  }

  @Test("NULL is read back as nil, not as an empty value") func nullIsReadBackAsNilNotAsAnEmptyValue() throws {
    for value in [String?.none, "", "full"] { try connection.run("INSERT INTO t VALUES (?)", value) }
    #expect(try connection.rows("SELECT x FROM t") { try $0.optionalText(0) } == [nil, "", "full"])
    #expect(try connection.rows("SELECT count(x) FROM t") { try $0.integer(0) } == [2])
  }

  @Test("Several parameters and columns keep their order") func severalParametersAndColumnsKeepTheirOrder() throws {
    let row = try connection.rows("SELECT ?, ?, ?", Int64(1), "two", [3] as [UInt8]) {
      (try $0.integer(0), try $0.text(1), try $0.blob(2))
    }
    #expect(row.count == 1)
    #expect(row[0] == (1, "two", [3]))
  }

  /// A manipulated file can contain any type, whatever the table's declaration says.
  @Test(
    "A column of another type is damage",
    arguments: [
      ("1", "integer"), ("'1'", "text"), ("x'31'", "blob"), ("1.0", "none"), ("NULL", "none"),
      ("CAST(x'ff' AS TEXT)", "none"),
    ])
  func columnOfAnotherTypeIsDamage(sql: String, type: String) {
    let readers: [(String, (borrowing Row) throws -> Void)] = [
      ("integer", { _ = try $0.integer(0) }), ("text", { _ = try $0.text(0) }), ("blob", { _ = try $0.blob(0) }),
    ]
    for (reader, read) in readers where reader != type {
      let error = #expect(throws: SQLiteError.self) { try connection.rows("SELECT \(sql) AS cell", as: read) }
      #expect(error?.isDamage == true)
      #expect(error?.message.hasPrefix("column cell is not ") == true)
    }
    for (reader, read) in readers where reader == type {
      #expect(throws: Never.self) { try connection.rows("SELECT \(sql)", as: read) }
    }
  }
}
