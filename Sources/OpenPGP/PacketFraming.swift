/// One packet of a binary OpenPGP sequence (RFC 9580 §4.2): where it stands, not what it means. librnp interprets;
/// this says which packets there are, because librnp passes over some that the profile forbids.
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
  /// First octet of the body: the version, for most packets.
  let version: UInt8
  /// Where the next packet begins.
  let end: Int

  /// More than any key or message of the profile has.
  static let countLimit = 64

  /// Splits `bytes`, all of them.
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
    // Partial lengths are for data of unknown size (RFC 9580 §4.2.1.4), and cannot begin with an empty part.
    guard !isPartial || tag == Packet.Tag.encryptedWithIntegrity else { throw .malformed("partial length") }
    guard let version = rest.first, length > 0 else { throw .malformed("empty packet") }
    try skip(length)
    while isPartial {
      (length, isPartial) = try newLength()
      try skip(length)
    }
    return Packet(tag: tag, version: version, end: rest.startIndex)
  }

  /// RFC 9580 §4.2.1.
  private mutating func newLength() throws(OpenPGPError) -> (Int, isPartial: Bool) {
    switch try octet() {
    case let first where first < 192: (Int(first), false)
    case let first where first < 224: ((Int(first) - 192) << 8 + Int(try octet()) + 192, false)
    case let first where first < 255: (1 << Int(first & 0x1f), true)
    default: (try number(octets: 4), false)
    }
  }

  /// RFC 9580 §4.2.2. Kind 3 would mean "to the end", which nothing here may be.
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
    // Four octets do not fit into the Int of a 32-bit board, which reads some of them as negative.
    guard (0...rest.count).contains(count) else { throw .malformed("truncated") }
    rest.removeFirst(count)
  }
}
