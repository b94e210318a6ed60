// SPDX-License-Identifier: Apache-2.0
import DisplayText

/// Writes the values of a message. Numbers are big-endian; texts and bytes have their length before them.
struct RelayWriter {
  private(set) var bytes: [UInt8] = []

  mutating func put(_ byte: UInt8) { bytes.append(byte) }
  mutating func put(_ flag: Bool) { bytes.append(flag ? 1 : 0) }

  mutating func put(_ number: Int64) {
    let bits = UInt64(bitPattern: number)
    for index in 0..<8 { bytes.append(UInt8(truncatingIfNeeded: bits >> (56 - 8 * UInt64(index)))) }
  }

  mutating func put(_ number: Int) { put(Int64(number)) }
  mutating func put(_ text: String) { put(Array(text.utf8)) }

  mutating func put(_ content: [UInt8]) {
    put(content.count)
    bytes += content
  }

  mutating func put<Value>(_ value: Value?, _ write: (inout RelayWriter, Value) -> Void) {
    put(value != nil)
    if let value { write(&self, value) }
  }

  mutating func put<Value>(all values: [Value], _ write: (inout RelayWriter, Value) -> Void) {
    put(values.count)
    for value in values { write(&self, value) }
  }
}

/// Reads the values of a message from arbitrary bytes.
struct RelayReader {
  private var rest: ArraySlice<UInt8>

  init(_ bytes: [UInt8]) { rest = bytes[...] }

  mutating func byte() throws(RelayError) -> UInt8 {
    guard let byte = rest.popFirst() else { throw .malformed("it ends too early") }
    return byte
  }

  mutating func flag() throws(RelayError) -> Bool {
    let byte = try byte()
    guard byte <= 1 else { throw .malformed("a flag of \(byte)") }
    return byte == 1
  }

  mutating func number() throws(RelayError) -> Int64 {
    var bits: UInt64 = 0
    for _ in 0..<8 { bits = bits << 8 | UInt64(try byte()) }
    return Int64(bitPattern: bits)
  }

  mutating func number(_ range: ClosedRange<Int>) throws(RelayError) -> Int {
    guard let number = Int(exactly: try number()), range.contains(number) else {
      throw .malformed("a number outside \(range)")
    }
    return number
  }

  mutating func bytes(atMost limit: Int) throws(RelayError) -> [UInt8] {
    let count = try number(0...limit)
    guard rest.count >= count else { throw .malformed("it ends too early") }
    defer { rest = rest.dropFirst(count) }
    return Array(rest.prefix(count))
  }

  mutating func text(atMost limit: Int) throws(RelayError) -> String {
    // Not repaired: the text must have the length and the content that were written.
    guard let text = String(validating: try bytes(atMost: limit), as: UTF8.self) else {
      throw .malformed("a text that is not UTF-8")
    }
    guard !text.hasTooManyCombiningMarks else { throw .malformed("a text with too many combining marks") }
    return text
  }

  mutating func optional<Value>(
    _ read: (inout RelayReader) throws(RelayError) -> Value
  ) throws(RelayError) -> Value? {
    try flag() ? try read(&self) : nil
  }

  mutating func list<Value>(
    atMost limit: Int, _ read: (inout RelayReader) throws(RelayError) -> Value
  ) throws(RelayError) -> [Value] {
    var values: [Value] = []
    for _ in 0..<(try number(0...limit)) { values.append(try read(&self)) }
    return values
  }

  func end() throws(RelayError) {
    guard rest.isEmpty else { throw .malformed("it has \(rest.count) bytes too many") }
  }
}
