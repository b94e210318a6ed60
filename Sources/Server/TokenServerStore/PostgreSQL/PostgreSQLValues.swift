// SPDX-License-Identifier: Apache-2.0
import CPostgreSQL

extension SQLValue {
  /// The number of PostgreSQL's type; 0 lets the database decide, for a NULL.
  var postgreSQLType: Oid {
    switch self {
    case .null: 0
    case .integer: 20
    case .real: 701
    case .text: 25
    case .blob: 17
    }
  }

  /// The binary format of the type; nil for NULL.
  /// - Throws: for a text with U+0000, which PostgreSQL cannot store.
  func postgreSQLBytes() throws -> [UInt8]? {
    switch self {
    case .null: return nil
    case .integer(let number): return withUnsafeBytes(of: number.bigEndian) { Array($0) }
    case .real(let number): return withUnsafeBytes(of: number.bitPattern.bigEndian) { Array($0) }
    case .text(let text): return try Array(text.storable.utf8)
    case .blob(let bytes): return bytes
    }
  }
}
