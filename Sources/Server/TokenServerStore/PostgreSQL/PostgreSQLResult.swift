// SPDX-License-Identifier: Apache-2.0
import CPostgreSQL

/// A result of a statement, in the binary format.
final class PostgreSQLResult {
  private let result: OpaquePointer
  let rowCount: Int32

  /// - Parameter result: freed by this object.
  init(owning result: OpaquePointer) {
    self.result = result
    rowCount = PQntuples(result)
  }

  deinit { PQclear(result) }

  enum Outcome {
    case success
    /// Nil if the connection has failed.
    case failure(PostgreSQLError?)
  }

  var outcome: Outcome {
    switch PQresultStatus(result) {
    case PGRES_COMMAND_OK, PGRES_TUPLES_OK: return .success
    default:
      guard let state = field("C") else { return .failure(nil) }
      return .failure(PostgreSQLError(state: state, message: field("M") ?? ""))
    }
  }

  /// Whether this is the end of requests that were sent at once, and no result.
  var isEndOfPipeline: Bool { PQresultStatus(result) == PGRES_PIPELINE_SYNC }

  private func field(_ code: Unicode.Scalar) -> String? {
    PQresultErrorField(result, Int32(code.value)).map { String(cString: $0) }
  }

  /// The number of rows that the statement changed.
  var changedRows: Int { Int(String(cString: PQcmdTuples(result))) ?? 0 }

  fileprivate var columnNames: [String] {
    (0..<PQnfields(result)).map { PQfname(result, $0).map { String(cString: $0) } ?? "" }
  }

  fileprivate func column(_ name: String) -> Int32 { PQfnumber(result, name) }

  fileprivate func value(row: Int32, column: Int32) -> SQLValue {
    guard PQgetisnull(result, row, column) == 0, let start = PQgetvalue(result, row, column) else { return .null }
    let bytes = UnsafeRawBufferPointer(start: start, count: Int(PQgetlength(result, row, column)))
    return switch (PQftype(result, column), bytes.count) {
    case (20, 8): .integer(Int64(bigEndian: bytes.loadUnaligned(as: Int64.self)))
    case (23, 4): .integer(Int64(Int32(bigEndian: bytes.loadUnaligned(as: Int32.self))))
    case (16, 1): .integer(bytes[0] == 0 ? 0 : 1)
    case (701, 8): .real(Double(bitPattern: UInt64(bigEndian: bytes.loadUnaligned(as: UInt64.self))))
    case (25, _), (1043, _): .text(String(decoding: bytes, as: UTF8.self))
    default: .blob(Array(bytes))
    }
  }
}

struct PostgreSQLRow: SQLRow {
  let result: PostgreSQLResult
  let row: Int32

  func value(of column: String) -> SQLValue {
    let number = result.column(column)
    return number < 0 ? .null : result.value(row: row, column: number)
  }

  var columns: [(name: String, value: SQLValue)] {
    result.columnNames.enumerated().map { ($1, result.value(row: row, column: Int32($0))) }
  }
}
