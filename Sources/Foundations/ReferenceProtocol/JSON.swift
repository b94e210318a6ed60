// SPDX-License-Identifier: Apache-2.0
import JSONValues

/// The JSON encoding of the protocol: snake_case names listed in `CodingKeys`, sorted keys so that equal values have
/// equal bytes, unknown members ignored, unknown enum values refused. Every number is a time or a count: an integer
/// from 0 to the end of the year 9999 in milliseconds, so that sums and differences of two numbers do not overflow 64
/// bits.
package enum JSON {
  /// Seconds since 1970 at the end of the year 9999.
  package static let latestSecond: Int64 = 253_402_300_799
  /// The end of the year 9999 in milliseconds since 1970: the largest valid number.
  package static let largestNumber: Int64 = latestSecond * 1000 + 999

  package static func encode(_ value: some Encodable) -> [UInt8] { JSONMessage.encode(value) }

  /// - Throws: `WireError.malformed`, naming the member that is missing, wrong or repeated.
  package static func decode<Value: Decodable>(_ type: Value.Type, from bytes: [UInt8]) throws(WireError) -> Value {
    let range = type is any ChecksOwnNumbers.Type ? nil : 0...largestNumber
    do { return try JSONMessage.decode(type, from: bytes, numbers: range) } catch {
      throw .malformed(what: "\(type)", why: error.why)
    }
  }
}

/// A message that checks its numbers itself, because a wrong number invalidates only a part of it.
protocol ChecksOwnNumbers: Decodable {}

/// A message that does not conform to the protocol.
package enum WireError: Error, Equatable, Sendable, CustomStringConvertible {
  case malformed(what: String, why: String)

  package var description: String {
    switch self {
    case .malformed(let what, let why): "\(what): \(why)"
    }
  }
}
