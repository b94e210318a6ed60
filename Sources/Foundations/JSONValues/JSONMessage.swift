// SPDX-License-Identifier: Apache-2.0

/// Encodes and decodes messages whose members are known: sorted keys so that equal values have equal bytes, unknown
/// members ignored, unknown enum values refused.
package enum JSONMessage {
  /// The text is not a message of the expected form. Names the member that is missing, wrong or repeated.
  package struct FormError: Error, Equatable, Sendable {
    package let why: String
  }

  /// - Parameter value: contains only texts, integers, truth values, and lists and objects of them, which can always be
  ///   encoded.
  package static func encode(_ value: some Encodable) -> [UInt8] {
    guard let encoded = try? JSONValueEncoder.encoded(value) else {
      preconditionFailure("\(type(of: value)) is not encodable")
    }
    return Array(encoded.canonical.utf8)
  }

  /// - Parameter numbers: the range of permitted numbers, which must then be integers; nil for any that a `Double`
  ///   can hold.
  package static func decode<Value: Decodable>(
    _ type: Value.Type, from bytes: [UInt8], numbers: ClosedRange<Int64>?
  ) throws(FormError) -> Value {
    let value: JSONValue
    do { value = try JSONSyntax.parse(bytes, numbers: numbers) } catch { throw FormError(why: "\(error)") }
    do { return try JSONValueDecoder(value).decode(type) } catch { throw FormError(why: explain(error)) }
  }

  private static func explain(_ error: any Error) -> String {
    switch error as? DecodingError {
    case .keyNotFound(let key, let context): "\(place(context.codingPath + [key])) is missing"
    case .typeMismatch(let type, let context): "\(place(context.codingPath)) is not \(name(of: type))"
    case .valueNotFound(_, let context): "\(place(context.codingPath)) is null"
    case .dataCorrupted(let context) where !context.codingPath.isEmpty:
      "\(place(context.codingPath)) has an unknown value"
    case .dataCorrupted, nil: "not JSON"
    @unknown default: "not JSON"
    }
  }

  /// The path of a member, in quotes: `"a.b[0]"`.
  private static func place(_ path: [any CodingKey]) -> String {
    guard !path.isEmpty else { return "the whole text" }
    let steps = path.map { key in key.intValue.map { "[\($0)]" } ?? ".\(key.stringValue)" }.joined()
    return "\"\(steps.hasPrefix(".") ? String(steps.dropFirst()) : steps)\""
  }

  /// The JSON type that is decoded as a Swift type.
  private static func name(of type: Any.Type) -> String {
    switch type {
    case is String.Type: "a string"
    case is Bool.Type: "true or false"
    case is any BinaryInteger.Type: "a whole number"
    case is any BinaryFloatingPoint.Type: "a number"
    case is [Any].Type: "a list"
    case is [String: Any].Type: "an object"
    default: "of the expected type"
    }
  }
}
