// SPDX-License-Identifier: Apache-2.0
import FoundationEssentials
import JSONValues

/// The JSON encoding of the protocol: snake_case names listed in `CodingKeys`, sorted keys so that equal values have
/// equal bytes, unknown members ignored, unknown enum values refused. Every number is a time or a count: an integer
/// from 0 to the end of the year 9999 in milliseconds, so that sums and differences of two numbers do not overflow 64
/// bits.
public enum JSON {
  /// Seconds since 1970 at the end of the year 9999.
  public static let latestSecond: Int64 = 253_402_300_799
  /// The end of the year 9999 in milliseconds since 1970: the largest valid number.
  public static let largestNumber: Int64 = latestSecond * 1000 + 999

  public static func encode(_ value: some Encodable) -> [UInt8] {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    // Wire types contain only texts, integers and lists of them, which can always be encoded.
    guard let data = try? encoder.encode(value) else { preconditionFailure("\(type(of: value)) is not encodable") }
    return [UInt8](data)
  }

  /// - Throws: `WireError.malformed`, naming the member that is missing, wrong or repeated.
  public static func decode<Value: Decodable>(_ type: Value.Type, from bytes: [UInt8]) throws(WireError) -> Value {
    let range = type is any ChecksOwnNumbers.Type ? nil : 0...largestNumber
    do { try JSONSyntax.check(bytes, numbers: range) } catch {
      throw .malformed(what: "\(type)", why: "\(error)")
    }
    do { return try JSONDecoder().decode(type, from: Data(bytes)) } catch {
      throw .malformed(what: "\(type)", why: explain(error))
    }
  }

  private static func explain(_ error: any Error) -> String {
    func path(_ context: DecodingError.Context) -> String {
      context.codingPath.map(\.stringValue).joined(separator: ".")
    }
    return switch error as? DecodingError {
    case .keyNotFound(let key, let context):
      "\"\((context.codingPath + [key]).map(\.stringValue).joined(separator: "."))\" is missing"
    case .typeMismatch(let type, let context): "\"\(path(context))\" is not a \(type)"
    case .valueNotFound(_, let context): "\"\(path(context))\" is null"
    case .dataCorrupted(let context) where !context.codingPath.isEmpty:
      "\"\(path(context))\" has an unknown value"
    case .dataCorrupted, nil: "not JSON"
    @unknown default: "not JSON"
    }
  }
}

/// A message that checks its numbers itself, because a wrong number invalidates only a part of it.
protocol ChecksOwnNumbers: Decodable {}

/// A message that does not conform to the protocol.
public enum WireError: Error, Equatable, Sendable, CustomStringConvertible {
  case malformed(what: String, why: String)

  public var description: String {
    switch self {
    case .malformed(let what, let why): "\(what): \(why)"
    }
  }
}
