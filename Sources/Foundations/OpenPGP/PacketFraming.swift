// SPDX-License-Identifier: Apache-2.0
/// The framing of one packet in a binary OpenPGP sequence (RFC 9580 §4.2). librnp interprets the packets. This parser
/// lists them, because librnp silently skips some that the profile forbids.
struct Packet: Equatable {
  enum Tag {
    static let encryptedSessionKey: UInt8 = 1
    static let signature: UInt8 = 2
    static let passwordSessionKey: UInt8 = 3
    static let secretKey: UInt8 = 5
    static let publicKey: UInt8 = 6
    static let secretSubkey: UInt8 = 7
    static let encryptedWithoutIntegrity: UInt8 = 9
    static let userID: UInt8 = 13
    static let publicSubkey: UInt8 = 14
    static let encryptedWithIntegrity: UInt8 = 18
  }

  let tag: UInt8
  /// The first octet of the body: the version, for most packets.
  let version: UInt8
  /// The position of the next packet.
  let end: Int

  /// The maximum number of packets, above that of any key or message of the profile.
  static let countLimit = 64

  /// Splits all of `bytes` into packets.
  static func sequence(in bytes: UnsafeRawBufferPointer) throws(OpenPGPError) -> [Packet] {
    var reader = PacketReader(rest: bytes[...])
    var packets: [Packet] = []
    while !reader.rest.isEmpty {
      guard packets.count < countLimit else { throw .malformed("more than \(countLimit) packets") }
      packets.append(try reader.packet())
    }
    return packets
  }
}

private struct PacketReader {
  var rest: Slice<UnsafeRawBufferPointer>

  mutating func packet() throws(OpenPGPError) -> Packet {
    let header = try octet()
    guard header & 0x80 != 0 else { throw .malformed("no binary packet header") }
    let isNewFormat = header & 0x40 != 0
    let tag = isNewFormat ? header & 0x3f : (header >> 2) & 0x0f
    var (length, isPartial) = isNewFormat ? try newLength() : (try oldLength(kind: header & 3), false)
    // Partial lengths are for data of unknown size (RFC 9580 §4.2.1.4) and cannot begin with an empty part.
    guard !isPartial || tag == Packet.Tag.encryptedWithIntegrity else { throw .malformed("partial length") }
    guard let version = rest.first, length > 0 else { throw .malformed("empty packet") }
    try skip(length)
    while isPartial {
      (length, isPartial) = try newLength()
      try skip(length)
    }
    return Packet(tag: tag, version: version, end: rest.startIndex)
  }

  /// Reads a new-format length. RFC 9580 §4.2.1.
  private mutating func newLength() throws(OpenPGPError) -> (Int, isPartial: Bool) {
    switch try octet() {
    case let first where first < 192: (Int(first), false)
    case let first where first < 224: ((Int(first) - 192) << 8 + Int(try octet()) + 192, false)
    case let first where first < 255: (1 << Int(first & 0x1f), true)
    default: (try number(octets: 4), false)
    }
  }

  /// Reads an old-format length. RFC 9580 §4.2.2. Kind 3, indeterminate length, is rejected.
  private mutating func oldLength(kind: UInt8) throws(OpenPGPError) -> Int {
    guard kind < 3 else { throw .malformed("indeterminate length") }
    return try number(octets: 1 << Int(kind))
  }

  private mutating func number(octets: Int) throws(OpenPGPError) -> Int {
    var number = 0
    for _ in 0..<octets { number = number << 8 | Int(try octet()) }
    return number
  }

  private mutating func octet() throws(OpenPGPError) -> UInt8 {
    guard let octet = rest.popFirst() else { throw .malformed("truncated") }
    return octet
  }

  private mutating func skip(_ count: Int) throws(OpenPGPError) {
    // On a 32-bit board, a length of four octets may overflow Int and become negative.
    guard (0...rest.count).contains(count) else { throw .malformed("truncated") }
    rest.removeFirst(count)
  }
}
