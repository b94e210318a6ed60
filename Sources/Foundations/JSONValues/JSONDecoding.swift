// SPDX-License-Identifier: Apache-2.0

/// Decodes a value of a known type from a parsed text.
struct JSONValueDecoder: Decoder {
  fileprivate let value: JSONValue
  fileprivate let path: Path

  var codingPath: [any CodingKey] { path.keys }
  var userInfo: [CodingUserInfoKey: Any] { [:] }

  init(_ value: JSONValue) { self.init(value, at: .whole) }

  fileprivate init(_ value: JSONValue, at path: Path) { (self.value, self.path) = (value, path) }

  func container<Key: CodingKey>(keyedBy type: Key.Type) throws -> KeyedDecodingContainer<Key> {
    guard case .object(let members) = value else { throw wrong([String: Any].self, value, at: path) }
    return KeyedDecodingContainer(Members(members: members, path: path))
  }

  func unkeyedContainer() throws -> any UnkeyedDecodingContainer {
    guard case .list(let elements) = value else { throw wrong([Any].self, value, at: path) }
    return Elements(elements: elements, path: path)
  }

  func singleValueContainer() -> any SingleValueDecodingContainer { self }
}

// A generic function is the witness of the requirements for all types.
extension JSONValueDecoder: SingleValueDecodingContainer {
  func decodeNil() -> Bool { value == .null }

  func decode<Value: Decodable>(_ type: Value.Type) throws -> Value {
    try decoded(type, value, at: path)
  }
}

extension JSONValue: Decodable {
  package init(from decoder: any Decoder) throws {
    guard let decoder = decoder as? JSONValueDecoder else {
      let why = "a JSON value can only be decoded from JSON"
      throw DecodingError.dataCorrupted(.init(codingPath: decoder.codingPath, debugDescription: why))
    }
    self = decoder.value
  }
}

/// The place of a value.
private indirect enum Path {
  case whole
  case member(any CodingKey, of: Path)
  case element(Int, of: Path)

  var keys: [any CodingKey] {
    switch self {
    case .whole: []
    case .member(let key, let object): object.keys + [key]
    case .element(let index, let list): list.keys + [IndexKey(index)]
    }
  }
}

struct SuperclassKey: CodingKey {
  init() {}
  init?(intValue: Int) { nil }
  init?(stringValue: String) { nil }

  var intValue: Int? { nil }
  var stringValue: String { "super" }
}

private struct IndexKey: CodingKey {
  let index: Int

  init(_ index: Int) { self.index = index }
  init(intValue: Int) { index = intValue }
  init?(stringValue: String) { nil }

  var intValue: Int? { index }
  var stringValue: String { "\(index)" }
}

/// - Parameter path: evaluated only for an error, and for values that have parts.
private func decoded<Value: Decodable>(
  _ type: Value.Type, _ value: JSONValue, at path: @autoclosure () -> Path
) throws -> Value {
  func exactly(_ found: Any?) throws -> Value {
    guard let found = found as? Value else { throw wrong(type, value, at: path()) }
    return found
  }
  func whole<Number: FixedWidthInteger>(_ type: Number.Type) throws -> Value {
    switch value {
    case .integer(let number): if let fitting = Number(exactly: number) as? Value { return fitting }
    case .fraction: break
    default: throw wrong(type, value, at: path())
    }
    let why = "the number does not fit into \(type)"
    throw DecodingError.dataCorrupted(.init(codingPath: path().keys, debugDescription: why))
  }
  switch type {
  case is String.Type: return try exactly(value.text)
  case is Bool.Type: return try exactly(value.bool)
  case is Int64.Type: return try whole(Int64.self)
  case is Int.Type: return try whole(Int.self)
  case is JSONValue.Type: return try exactly(value)
  case is Double.Type: return try exactly(value.number)
  case is Float.Type: return try exactly(value.number.map { Float($0) })
  default:
    if let number = type as? any FixedWidthInteger.Type { return try whole(number) }
    return try Value(from: JSONValueDecoder(value, at: path()))
  }
}

/// The error for a value of another JSON type.
private func wrong(_ type: Any.Type, _ value: JSONValue, at path: Path) -> DecodingError {
  let context = DecodingError.Context(codingPath: path.keys, debugDescription: "of another JSON type")
  return value == .null ? .valueNotFound(type, context) : .typeMismatch(type, context)
}

extension JSONValue {
  fileprivate var number: Double? {
    switch self {
    case .integer(let number): Double(number)
    case .fraction(let number): number
    default: nil
    }
  }
}

private struct Members<Key: CodingKey>: KeyedDecodingContainerProtocol {
  let members: [String: JSONValue]
  let path: Path

  var codingPath: [any CodingKey] { path.keys }
  var allKeys: [Key] { members.keys.compactMap { Key(stringValue: $0) } }

  func contains(_ key: Key) -> Bool { members[key.stringValue] != nil }

  private func member(_ key: some CodingKey) throws -> JSONValue {
    guard let value = members[key.stringValue] else {
      throw DecodingError.keyNotFound(key, .init(codingPath: codingPath, debugDescription: "missing"))
    }
    return value
  }

  private func decoder(of key: some CodingKey) throws -> JSONValueDecoder {
    JSONValueDecoder(try member(key), at: .member(key, of: path))
  }

  func decodeNil(forKey key: Key) throws -> Bool { try member(key) == .null }

  func decode<Value: Decodable>(_ type: Value.Type, forKey key: Key) throws -> Value {
    try decoded(type, member(key), at: .member(key, of: path))
  }

  func nestedContainer<Nested: CodingKey>(
    keyedBy type: Nested.Type, forKey key: Key
  ) throws -> KeyedDecodingContainer<Nested> {
    try decoder(of: key).container(keyedBy: type)
  }

  func nestedUnkeyedContainer(forKey key: Key) throws -> any UnkeyedDecodingContainer {
    try decoder(of: key).unkeyedContainer()
  }

  func superDecoder() throws -> any Decoder { try decoder(of: SuperclassKey()) }

  func superDecoder(forKey key: Key) throws -> any Decoder { try decoder(of: key) }
}

private struct Elements: UnkeyedDecodingContainer {
  let elements: [JSONValue]
  let path: Path
  private(set) var currentIndex = 0

  init(elements: [JSONValue], path: Path) { (self.elements, self.path) = (elements, path) }

  var codingPath: [any CodingKey] { path.keys }
  var count: Int? { elements.count }
  var isAtEnd: Bool { currentIndex >= elements.count }

  private func element(_ type: Any.Type) throws -> JSONValue {
    guard !isAtEnd else { throw wrong(type, .null, at: .element(currentIndex, of: path)) }
    return elements[currentIndex]
  }

  private mutating func decoder(for type: Any.Type) throws -> JSONValueDecoder {
    let decoder = JSONValueDecoder(try element(type), at: .element(currentIndex, of: path))
    currentIndex += 1
    return decoder
  }

  mutating func decodeNil() throws -> Bool {
    guard try element(Any?.self) == .null else { return false }
    currentIndex += 1
    return true
  }

  mutating func decode<Value: Decodable>(_ type: Value.Type) throws -> Value {
    let value = try decoded(type, element(type), at: .element(currentIndex, of: path))
    currentIndex += 1
    return value
  }

  mutating func nestedContainer<Nested: CodingKey>(
    keyedBy type: Nested.Type
  ) throws -> KeyedDecodingContainer<Nested> {
    try decoder(for: [String: Any].self).container(keyedBy: type)
  }

  mutating func nestedUnkeyedContainer() throws -> any UnkeyedDecodingContainer {
    try decoder(for: [Any].self).unkeyedContainer()
  }

  mutating func superDecoder() throws -> any Decoder { try decoder(for: Any.self) }
}
