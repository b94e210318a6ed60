// SPDX-License-Identifier: Apache-2.0
import Secrets
import Testing

@Suite("Fields of a stored record", .timeLimit(.minutes(5))) struct SecretFieldsTests {
  private enum Tag: UInt16 { case first = 1, second = 2, last = 65_535 }

  private func bytes(_ secret: SecretBytes?) -> [UInt8]? { secret?.withExposedSecret { Array($0) } }

  private static let header: [UInt8] = [0xA7, 0x46, 1]
  private static func field(_ tag: UInt8, _ length: UInt8, _ value: [UInt8]) -> [UInt8] {
    [0, tag, 0, 0, 0, length] + value
  }

  @Test("Are read as they were written, and an unknown one is kept") func roundTrip() throws {
    var fields = SecretFields()
    fields[Tag.last] = SecretBytes(copying: [UInt8](repeating: 9, count: 70_000))
    fields.set(Tag.first, text: "ä")
    fields.set(Tag.second, number: -5)
    var again = try #require(SecretFields(encoded: fields.encoded))
    #expect(again.text(Tag.first) == "ä" && again.number(Tag.second) == -5)
    again.set(Tag.first, text: "")
    again[Tag.second] = nil
    let kept = try #require(SecretFields(encoded: again.encoded))
    #expect(kept.text(Tag.first) == "" && kept[Tag.second] == nil && kept[Tag.last]?.count == 70_000)
  }

  @Test("Have one encoding") func oneEncoding() {
    var fields = SecretFields()
    fields.set(Tag.second, text: "b")
    fields.set(Tag.first, text: "a")
    #expect(bytes(fields.encoded) == Self.header + Self.field(1, 1, [0x61]) + Self.field(2, 1, [0x62]))
    #expect(SecretFields.isEncoding(fields.encoded) && bytes(SecretFields().encoded) == Self.header)
  }

  private static let malformed: [[UInt8]] = [
    [], [0xA7], [0xA7, 0x46], [0xA7, 0x46, 2], [0xA7, 0x46, 0], header + [0], header + [0, 1, 0, 0, 0],
    header + field(1, 1, []), header + field(1, 2, [7]), header + field(1, 1, [7, 7]),
    header + field(1, 0, []) + field(1, 0, []), header + field(2, 0, []) + field(1, 0, []),
    header + [0, 1, 0x7F, 0xFF, 0xFF, 0xFF], header + [0, 1, 0xFF, 0xFF, 0xFF, 0xFF, 0],
    header + [0, 1, 1, 0, 0, 1] + [UInt8](repeating: 0, count: SecretFields.maximumLength + 1),
    header + (0...UInt8(SecretFields.maximumCount)).flatMap { field($0, 0, []) },
  ]

  /// The arguments are numbers: the test library would encode each list of 64 KiB as JSON.
  @Test("That are duplicate, out of order, too long or cut off are refused", arguments: malformed.indices)
  func refused(number: Int) {
    #expect(SecretFields(encoded: SecretBytes(copying: Self.malformed[number])) == nil)
  }

  @Test("Are accepted up to the maximum number") func maximumCount() {
    let most = (1...UInt8(SecretFields.maximumCount)).flatMap { Self.field($0, 0, []) }
    var fields = SecretFields(encoded: SecretBytes(copying: Self.header + most))
    #expect(fields != nil)
    // A record of a later version with this many unknown fields must not end the process when it is written again.
    fields?[Tag.last] = SecretBytes(copying: [7])
    #expect(fields.map { SecretFields(encoded: $0.encoded) == nil } == true)
  }

  @Test("That are not text or not a number are nil") func malformedValues() throws {
    let encoded = Self.header + Self.field(1, 1, [0xFF]) + Self.field(2, 2, Array("1x".utf8))
    let fields = try #require(SecretFields(encoded: SecretBytes(copying: encoded)))
    let number: Int? = fields.number(Tag.second)
    #expect(fields.text(Tag.first) == nil && number == nil && fields.text(Tag.second) == "1x")
  }
}
