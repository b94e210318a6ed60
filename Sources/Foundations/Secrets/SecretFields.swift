// SPDX-License-Identifier: Apache-2.0

/// The fields of a stored record, by tag. The encoding is two bytes that no former encoding begins with, the version,
/// and for each field, in ascending order of tags, the tag (2 bytes), the length (4 bytes) and the value; numbers are
/// big endian. Fields with unknown tags are kept. No value is copied to ordinary memory.
package struct SecretFields: Sendable {
  /// The maximum number of fields.
  package static let maximumCount = 64
  /// The maximum length of a value in bytes. Responses of servers are shorter.
  package static let maximumLength = 1 << 24

  private static let header: [UInt8] = [0xA7, 0x46, 1]
  private static let fieldHeaderCount = 6

  private var values: [UInt16: SecretBytes] = [:]

  package init() {}

  /// Decodes a record.
  /// - Returns: nil for bytes that are not this encoding in this version, and beyond the maximums.
  package init?(encoded: SecretBytes) {
    guard let values = encoded.withExposedSecret(Self.values(in:)) else { return nil }
    self.values = values
  }

  /// Whether the bytes begin like this encoding, of any version.
  package static func isEncoding(_ bytes: SecretBytes) -> Bool {
    bytes.withExposedSecret { $0.starts(with: header.prefix(2)) }
  }

  private static func values(in bytes: UnsafeRawBufferPointer) -> [UInt16: SecretBytes]? {
    guard bytes.starts(with: header) else { return nil }
    var rest = bytes[header.count...]
    var values: [UInt16: SecretBytes] = [:]
    var last = -1
    while !rest.isEmpty {
      guard rest.count >= fieldHeaderCount, values.count < maximumCount else { return nil }
      let head = UnsafeRawBufferPointer(rebasing: rest.prefix(fieldHeaderCount))
      let tag = UInt16(bigEndian: head.loadUnaligned(as: UInt16.self))
      let length = Int(UInt32(bigEndian: head.loadUnaligned(fromByteOffset: 2, as: UInt32.self)))
      rest = rest.dropFirst(fieldHeaderCount)
      guard Int(tag) > last, length <= min(maximumLength, rest.count) else { return nil }
      values[tag] = SecretBytes(copying: rest.prefix(length))
      last = Int(tag)
      rest = rest.dropFirst(length)
    }
    return values
  }

  /// The record. More than `maximumCount` fields are encoded but not decoded: a record of `maximumCount` unknown fields
  /// must not end the process when a known field is added.
  /// - Precondition: each value has at most `maximumLength` bytes.
  package var encoded: SecretBytes {
    precondition(values.values.allSatisfy { $0.count <= Self.maximumLength })
    let fields = values.sorted { $0.key < $1.key }
    let count = fields.reduce(Self.header.count) { $0 + Self.fieldHeaderCount + $1.value.count }
    return SecretBytes(count: count) { (target: UnsafeMutableRawBufferPointer) in
      target.copyBytes(from: Self.header)
      var offset = Self.header.count
      for (tag, value) in fields {
        target.storeBytes(of: tag.bigEndian, toByteOffset: offset, as: UInt16.self)
        target.storeBytes(of: UInt32(value.count).bigEndian, toByteOffset: offset + 2, as: UInt32.self)
        offset += Self.fieldHeaderCount
        value.withExposedSecret { value in
          UnsafeMutableRawBufferPointer(rebasing: target[offset..<offset + value.count]).copyMemory(from: value)
        }
        offset += value.count
      }
    }
  }

  /// The value of a field; nil if there is none. An empty value differs from none.
  package subscript<Tag: RawRepresentable<UInt16>>(tag: Tag) -> SecretBytes? {
    get { values[tag.rawValue] }
    set { values[tag.rawValue] = newValue }
  }
}

/// Fields that are not secret themselves.
extension SecretFields {
  /// The text of a field; nil also if it is not UTF-8.
  package func text<Tag: RawRepresentable<UInt16>>(_ tag: Tag) -> String? {
    self[tag].flatMap { $0.withExposedSecret { String(validating: $0, as: UTF8.self) } }
  }

  package mutating func set<Tag: RawRepresentable<UInt16>>(_ tag: Tag, text: String?) {
    self[tag] = text.map { SecretBytes(copying: Array($0.utf8)) }
  }

  /// The decimal number of a field; nil also if it is not one.
  package func number<Number: FixedWidthInteger, Tag: RawRepresentable<UInt16>>(_ tag: Tag) -> Number? {
    text(tag).flatMap { Number($0) }
  }

  package mutating func set<Tag: RawRepresentable<UInt16>>(_ tag: Tag, number: (some FixedWidthInteger)?) {
    set(tag, text: number.map { String($0) })
  }
}
