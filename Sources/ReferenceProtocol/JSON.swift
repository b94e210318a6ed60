import FoundationEssentials
import JSONValues

/// The one JSON dialect of the protocol: snake_case names spelled out in `CodingKeys`, sorted keys so that equal
/// values have equal bytes, unknown members ignored, unknown enum values refused. Every number is a time or a count: a
/// whole one from 0 to the end of the year 9999 in milliseconds, so that whoever computes with two of them stays within
/// 64 bits.
public enum JSON {
  /// Seconds since 1970 at the end of the year 9999.
  public static let latestSecond: Int64 = 253_402_300_799
  /// The same in milliseconds, and the largest number there is.
  public static let largestNumber: Int64 = latestSecond * 1000 + 999

  public static func encode(_ value: some Encodable) -> [UInt8] {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    // Wire types hold texts, whole numbers and lists of them: nothing an encoder can refuse.
    guard let data = try? encoder.encode(value) else { preconditionFailure("\(type(of: value)) is not encodable") }
    return [UInt8](data)
  }

  /// - Throws: `WireError.malformed`, naming the member that is missing, wrong or there twice.
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
      "\"\(path(context))\" has a value we do not know"
    case .dataCorrupted, nil: "not JSON"
    @unknown default: "not JSON"
    }
  }
}

/// A message that looks at its numbers itself, because one that is wrong does not spoil the rest of it.
protocol ChecksOwnNumbers: Decodable {}

/// A message of the protocol that is not what it should be.
public enum WireError: Error, Equatable, Sendable, CustomStringConvertible {
  case malformed(what: String, why: String)

  public var description: String {
    switch self {
    case .malformed(let what, let why): "\(what): \(why)"
    }
  }
}
