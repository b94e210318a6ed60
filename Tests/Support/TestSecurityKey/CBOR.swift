// SPDX-License-Identifier: Apache-2.0

/// The part of CBOR (RFC 8949) that CTAP2 uses.
package indirect enum CBOR: Equatable, Sendable {
  case number(Int)
  case bytes([UInt8])
  case text(String)
  case list([CBOR])
  case map([(CBOR, CBOR)])
  case flag(Bool)

  package static func == (one: CBOR, other: CBOR) -> Bool { one.encoded == other.encoded }

  package var encoded: [UInt8] {
    switch self {
    case .number(let number) where number < 0: Self.head(1, -1 - number)
    case .number(let number): Self.head(0, number)
    case .bytes(let bytes): Self.head(2, bytes.count) + bytes
    case .text(let text): Self.head(3, text.utf8.count) + Array(text.utf8)
    case .list(let list): list.reduce(into: Self.head(4, list.count)) { $0 += $1.encoded }
    case .map(let map): map.reduce(into: Self.head(5, map.count)) { $0 += $1.0.encoded + $1.1.encoded }
    case .flag(let flag): [flag ? 0xF5 : 0xF4]
    }
  }

  private static func head(_ major: UInt8, _ number: Int) -> [UInt8] {
    switch number {
    case ..<24: [major << 5 | UInt8(number)]
    case ..<256: [major << 5 | 24, UInt8(number)]
    default: [major << 5 | 25, UInt8(number >> 8 & 255), UInt8(number & 255)]
    }
  }

  /// - Returns: nil for what is not CBOR, or a part that CTAP2 does not use.
  package init?(_ bytes: [UInt8]) {
    var rest = bytes[...]
    guard let value = CBOR(reading: &rest), rest.isEmpty else { return nil }
    self = value
  }

  private init?(reading rest: inout ArraySlice<UInt8>) {
    guard let first = rest.popFirst() else { return nil }
    if first == 0xF4 || first == 0xF5 {
      self = .flag(first == 0xF5)
      return
    }
    var number = Int(first & 31)
    if number >= 24 {
      let length = number == 24 ? 1 : number == 25 ? 2 : 4
      guard rest.count >= length else { return nil }
      number = rest.prefix(length).reduce(0) { $0 << 8 | Int($1) }
      rest = rest.dropFirst(length)
    }
    switch first >> 5 {
    case 0: self = .number(number)
    case 1: self = .number(-1 - number)
    case 2, 3:
      guard rest.count >= number else { return nil }
      let content = Array(rest.prefix(number))
      rest = rest.dropFirst(number)
      self = first >> 5 == 2 ? .bytes(content) : .text(String(decoding: content, as: UTF8.self))
    case 4:
      var list: [CBOR] = []
      for _ in 0..<number {
        guard let value = CBOR(reading: &rest) else { return nil }
        list.append(value)
      }
      self = .list(list)
    case 5:
      var map: [(CBOR, CBOR)] = []
      for _ in 0..<number {
        guard let key = CBOR(reading: &rest), let value = CBOR(reading: &rest) else { return nil }
        map.append((key, value))
      }
      self = .map(map)
    default: return nil
    }
  }

  package subscript(key: Int) -> CBOR? { self[.number(key)] }
  package subscript(key: String) -> CBOR? { self[.text(key)] }

  private subscript(key: CBOR) -> CBOR? {
    guard case .map(let map) = self else { return nil }
    return map.first { $0.0 == key }?.1
  }

  package var content: [UInt8] {
    switch self {
    case .bytes(let bytes): bytes
    case .text(let text): Array(text.utf8)
    default: []
    }
  }
}
