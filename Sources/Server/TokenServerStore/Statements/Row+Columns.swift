// SPDX-License-Identifier: Apache-2.0
import ReferenceProtocol
import TokenServerCore

/// A row that no version of this server wrote: the file was edited or is damaged. The text names column and error,
/// never the value.
package struct CorruptRowError: Error, Equatable, CustomStringConvertible {
  package let description: String

  package init(_ column: String, _ fault: String) { description = "\(column) \(fault)" }
}

/// Typed access to columns. What is stored is untrusted: a value may have any type, and an out-of-range number would
/// trap in a later computation.
extension SQLRow {
  func text(_ column: String) throws(CorruptRowError) -> String {
    guard let text = try optionalText(column) else { throw CorruptRowError(column, "is null") }
    return text
  }

  func optionalText(_ column: String) throws(CorruptRowError) -> String? {
    switch value(of: column) {
    case .null: return nil
    case .text(let text): return text
    default: throw CorruptRowError(column, "is not text")
    }
  }

  func userID(_ column: String) throws(CorruptRowError) -> UserID { UserID(try text(column)) }

  func clientID(_ column: String) throws(CorruptRowError) -> ClientID { ClientID(try text(column)) }

  func profileID(_ column: String) throws(CorruptRowError) -> ProfileID { ProfileID(try text(column)) }

  func bytes(_ column: String) throws(CorruptRowError) -> [UInt8] {
    guard let bytes = try optionalBytes(column) else { throw CorruptRowError(column, "is null") }
    return bytes
  }

  func optionalBytes(_ column: String) throws(CorruptRowError) -> [UInt8]? {
    switch value(of: column) {
    case .null: return nil
    case .blob(let bytes): return bytes
    default: throw CorruptRowError(column, "is not a blob")
    }
  }

  /// From 1970 to the year 9999.
  func time(_ column: String) throws(CorruptRowError) -> Timestamp {
    Timestamp(try whole(column, within: 0...JSON.largestNumber))
  }

  func optionalTime(_ column: String) throws(CorruptRowError) -> Timestamp? {
    value(of: column) == .null ? nil : try time(column)
  }

  /// 0 to 1,000,000,000.
  func count(_ column: String) throws(CorruptRowError) -> Int { Int(try whole(column, within: 0...1_000_000_000)) }

  /// A size in bytes: 0 to 9,007,199,254,740,991.
  func size(_ column: String) throws(CorruptRowError) -> Int {
    Int(try whole(column, within: 0...9_007_199_254_740_991))
  }

  func flag(_ column: String) throws(CorruptRowError) -> Bool { try whole(column, within: 0...1) == 1 }

  private func whole(_ column: String, within range: ClosedRange<Int64>) throws(CorruptRowError) -> Int64 {
    guard case .integer(let number) = value(of: column) else { throw CorruptRowError(column, "is not a number") }
    guard range.contains(number) else { throw CorruptRowError(column, "is out of range") }
    return number
  }
}
