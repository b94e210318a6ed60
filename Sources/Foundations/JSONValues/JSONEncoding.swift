// SPDX-License-Identifier: Apache-2.0

/// Encodes a value as a JSON value, whose text has sorted members.
final class JSONValueEncoder: Encoder {
  let codingPath: [any CodingKey] = []
  var userInfo: [CodingUserInfoKey: Any] { [:] }
  fileprivate var content = Content.nothing

  fileprivate enum Content {
    case nothing
    case value(JSONValue)
    case members([(name: String, encoder: JSONValueEncoder)], [String: JSONValue])
    case elements([Element])
  }

  fileprivate enum Element {
    case value(JSONValue)
    case encoder(JSONValueEncoder)
  }

  /// What was encoded. A value that encodes nothing is an empty object, as in Foundation.
  var value: JSONValue {
    switch content {
    case .nothing: return .object([:])
    case .value(let value): return value
    case .members(let nested, var members):
      for (name, encoder) in nested { members[name] = encoder.value }
      return .object(members)
    case .elements(let elements):
      return .list(
        elements.map { element in
          switch element {
          case .value(let value): value
          case .encoder(let encoder): encoder.value
          }
        })
    }
  }

  static func encoded(_ value: some Encodable) throws -> JSONValue {
    func whole(_ number: some FixedWidthInteger) throws -> JSONValue {
      guard let fitting = Int64(exactly: number) else {
        throw EncodingError.invalidValue(number, .init(codingPath: [], debugDescription: "more than 63 bits"))
      }
      return .integer(fitting)
    }
    func fraction(_ number: Double) throws -> JSONValue {
      guard let value = JSONValue(number) else {
        throw EncodingError.invalidValue(number, .init(codingPath: [], debugDescription: "not a number in JSON"))
      }
      return value
    }
    switch value {
    case let text as String: return .text(text)
    case let bool as Bool: return .bool(bool)
    case let number as Int64: return .integer(number)
    case let number as Int: return .integer(Int64(number))
    case let value as JSONValue: return value
    case let number as any FixedWidthInteger: return try whole(number)
    case let number as Double: return try fraction(number)
    case let number as Float: return try fraction(Double(number))
    default:
      let encoder = JSONValueEncoder()
      try value.encode(to: encoder)
      return encoder.value
    }
  }

  func container<Key: CodingKey>(keyedBy type: Key.Type) -> KeyedEncodingContainer<Key> {
    if case .members = content {} else { content = .members([], [:]) }
    return KeyedEncodingContainer(MemberEncoding(encoder: self))
  }

  func unkeyedContainer() -> any UnkeyedEncodingContainer {
    if case .elements = content {} else { content = .elements([]) }
    return ElementEncoding(encoder: self)
  }

  func singleValueContainer() -> any SingleValueEncodingContainer { self }

  fileprivate func add(_ value: JSONValue, for key: some CodingKey) {
    guard case .members(let nested, var members) = content else { preconditionFailure("not an object") }
    content = .nothing
    members[key.stringValue] = value
    content = .members(nested, members)
  }

  fileprivate func nested(for key: some CodingKey) -> JSONValueEncoder {
    guard case .members(var nested, let members) = content else { preconditionFailure("not an object") }
    let encoder = JSONValueEncoder()
    content = .nothing
    nested.append((key.stringValue, encoder))
    content = .members(nested, members)
    return encoder
  }

  fileprivate func add(_ element: Element) {
    guard case .elements(var elements) = content else { preconditionFailure("not a list") }
    content = .nothing
    elements.append(element)
    content = .elements(elements)
  }

  fileprivate func nested() -> JSONValueEncoder {
    let encoder = JSONValueEncoder()
    add(.encoder(encoder))
    return encoder
  }
}

// A generic function is the witness of the requirements for all types.
extension JSONValueEncoder: SingleValueEncodingContainer {
  func encodeNil() { content = .value(.null) }

  func encode(_ value: some Encodable) throws { content = .value(try Self.encoded(value)) }
}

private struct MemberEncoding<Key: CodingKey>: KeyedEncodingContainerProtocol {
  let encoder: JSONValueEncoder

  var codingPath: [any CodingKey] { [] }

  func encodeNil(forKey key: Key) { encoder.add(.null, for: key) }

  func encode(_ value: some Encodable, forKey key: Key) throws {
    encoder.add(try JSONValueEncoder.encoded(value), for: key)
  }

  func nestedContainer<Nested: CodingKey>(
    keyedBy type: Nested.Type, forKey key: Key
  ) -> KeyedEncodingContainer<Nested> {
    encoder.nested(for: key).container(keyedBy: type)
  }

  func nestedUnkeyedContainer(forKey key: Key) -> any UnkeyedEncodingContainer {
    encoder.nested(for: key).unkeyedContainer()
  }

  func superEncoder() -> any Encoder { encoder.nested(for: SuperclassKey()) }

  func superEncoder(forKey key: Key) -> any Encoder { encoder.nested(for: key) }
}

private struct ElementEncoding: UnkeyedEncodingContainer {
  let encoder: JSONValueEncoder

  var codingPath: [any CodingKey] { [] }
  var count: Int { if case .elements(let elements) = encoder.content { elements.count } else { 0 } }

  func encodeNil() { encoder.add(.value(.null)) }

  func encode(_ value: some Encodable) throws { encoder.add(.value(try JSONValueEncoder.encoded(value))) }

  func nestedContainer<Nested: CodingKey>(keyedBy type: Nested.Type) -> KeyedEncodingContainer<Nested> {
    encoder.nested().container(keyedBy: type)
  }

  func nestedUnkeyedContainer() -> any UnkeyedEncodingContainer { encoder.nested().unkeyedContainer() }

  func superEncoder() -> any Encoder { encoder.nested() }
}

extension JSONValue: Encodable {
  /// By `JSONValueEncoder` it is taken as it is.
  package func encode(to encoder: any Encoder) throws {
    var container = encoder.singleValueContainer()
    switch self {
    case .null: try container.encodeNil()
    case .bool(let bool): try container.encode(bool)
    case .integer(let number): try container.encode(number)
    case .fraction(let number): try container.encode(number)
    case .text(let text): try container.encode(text)
    case .list(let values): try container.encode(values)
    case .object(let members): try container.encode(members)
    }
  }
}
