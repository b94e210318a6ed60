// SPDX-License-Identifier: Apache-2.0
import Foundation
import Testing

@testable import JSONValues

/// JSON as Foundation reads and writes it.
@Suite(.timeLimit(.minutes(5))) struct JSONModelTests {
  /// A value that Foundation has decoded.
  private struct Model: Decodable {
    let value: JSONValue

    init(from decoder: any Decoder) throws {
      let container = try decoder.singleValueContainer()
      if let text = try? container.decode(String.self) {
        value = .text(text)
      } else if let members = try? container.decode([String: Model].self) {
        value = .object(members.mapValues(\.value))
      } else if let elements = try? container.decode([Model].self) {
        value = .list(elements.map(\.value))
      } else if let bool = try? container.decode(Bool.self) {
        value = .bool(bool)
      } else if container.decodeNil() {
        value = .null
      } else if let number = try? container.decode(Int64.self) {
        value = .integer(number)
      } else {
        value = .fraction(try container.decode(Double.self))
      }
    }
  }

  private struct Sample: Codable, Equatable {
    enum Kind: String, Codable { case one, two }
    struct Part: Codable, Equatable { var a: Bool }

    var text: String
    var number: Int64
    var small: UInt8
    var port: UInt16
    var share: Double
    var kind: Kind
    var absent: String?
    var present: Int?
    var parts: [Part]
    var named: [String: Part]
    var any: JSONValue
    var nested: [[Int?]]
  }

  private static let sample = Sample(
    text: "é/\u{1}\"\\\n\u{7F}\u{2028}", number: .max, small: 255, port: 0, share: 0.25, kind: .two, absent: nil,
    present: -1,
    parts: [.init(a: true), .init(a: false)], named: ["b": .init(a: true), "a": .init(a: false)],
    any: .object(["z": .null, "y": .list([.integer(1), .text("")])]), nested: [[1, nil], []])

  private static let encoder = {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    return encoder
  }()

  @Test("A value is written as by Foundation, and read again") func sample() throws {
    let written = JSONMessage.encode(Self.sample)
    #expect(
      try String(decoding: written, as: UTF8.self) == String(decoding: Self.encoder.encode(Self.sample), as: UTF8.self))
    #expect(try JSONMessage.decode(Sample.self, from: written, numbers: nil) == Self.sample)
    for empty in [JSONMessage.encode([Int]()), JSONMessage.encode([String: Int]())] { #expect(empty.count == 2) }
  }

  @Test("What is read from arbitrary bytes is what Foundation reads, and is written as by Foundation")
  func arbitrary() throws {
    let seed = UInt64.random(in: .min ... .max)
    var state = seed
    func next(_ count: Int) -> Int {
      state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
      return Int(state >> 33) % count
    }
    let pieces =
      [
        "{", "}", "[", "]", ",", ":", "\"", "\\", "\\u0041", "\\ud83d\\ude00", "e", "E", "-", "+", ".", "0", "17",
        "[9223372036854775808]",
      ]
      + ["true", "false", "null", " ", "\"a\"", "\"b\":", "{\"c\":", "[1,", "1e3", "-0.0", "\u{0}", "é", "\u{1F600}"]
    let parts = pieces.map { Array($0.utf8) } + [[0x80], [0xC3], [0xFF]]
    var accepted = 0
    for _ in 0..<40_000 {
      let bytes = (0...next(9)).flatMap { _ in parts[next(parts.count)] }
      let comment: Comment = "seed \(seed): \(String(decoding: bytes, as: UTF8.self).debugDescription)"
      let model = (try? JSONDecoder().decode(Model.self, from: Data(bytes)))?.value
      do {
        let value = try JSONSyntax.parse(bytes)
        accepted += 1
        #expect(model == value, comment)
        #expect((try? Self.encoder.encode(value)).map(Array.init) == JSONMessage.encode(value), comment)
      } catch {
        // Only refused here: repeated members and large numbers; a comma before the end, a NUL after it, and what is
        // not UTF-8.
        let isLenient = String(validating: bytes, as: UTF8.self)?.contains(#/, *[\]}]|\u{0}/#) ?? true
        #expect(model == nil || error != .notJSON || isLenient, comment)
      }
    }
    #expect(accepted > 1000, "seed \(seed)")
  }

  @Test(
    "Numbers are integers if they are whole as a Double",
    arguments: [
      ("9223372036854775807", .integer(.max)), ("-9223372036854775808", .integer(.min)), ("-0", .integer(0)),
      ("9223372036854775808", .fraction(9_223_372_036_854_775_808)), ("1e3", .integer(1000)), ("-0.0", .integer(0)),
      ("9007199254740993.0", .integer(9_007_199_254_740_992)), ("-9223372036854775808e0", .integer(.min)),
      ("0.5", .fraction(0.5)), ("1e300", .fraction(1e300)),
    ] as [(String, JSONValue)])
  func numbers(text: String, value: JSONValue) { #expect(JSONValue(parsing: Array(text.utf8)) == value) }

  @Test("Numbers of all types are written and read") func types() throws {
    func check<Number: Codable & Equatable>(_ numbers: [Number], _ text: String) throws {
      let written = JSONMessage.encode(numbers)
      #expect(String(decoding: written, as: UTF8.self) == text)
      #expect(try JSONMessage.decode([Number].self, from: written, numbers: nil) == numbers)
    }
    try check([Int8.min, .max], "[-128,127]")
    try check([Int16.min, .max], "[-32768,32767]")
    try check([Int32.min, .max], "[-2147483648,2147483647]")
    try check([Int64.min, .max], "[-9223372036854775808,9223372036854775807]")
    try check([Int.min, .max], "[-9223372036854775808,9223372036854775807]")
    try check([UInt8.max], "[255]")
    try check([UInt16.max], "[65535]")
    try check([UInt32.max], "[4294967295]")
    try check([UInt64(Int64.max)], "[9223372036854775807]")
    try check([Int128(1)], "[1]")
    try check([Double(1), 0.5, -0.25, 1e300], "[1,0.5,-0.25,1e+300]")
    try check([Float(1), 0.5], "[1,0.5]")
    #expect(throws: EncodingError.self) { try JSONValueEncoder.encoded(UInt64.max) }
    #expect(throws: EncodingError.self) { try JSONValueEncoder.encoded([Double.nan]) }
  }

  /// Of a class, with containers in containers.
  private final class Containers: Codable {
    enum Key: String, CodingKey { case members, list, none }

    init() {}

    init(from decoder: any Decoder) throws {
      let container = try decoder.container(keyedBy: Key.self)
      #expect(try container.nestedContainer(keyedBy: Key.self, forKey: .members).decode(Int.self, forKey: .none) == 1)
      var list = try container.nestedUnkeyedContainer(forKey: .list)
      #expect(try list.nestedContainer(keyedBy: Key.self).decodeNil(forKey: .none))
      #expect(try list.nestedUnkeyedContainer().isAtEnd)
      #expect(try list.decode(Int?.self) == nil)
      #expect(try String(from: list.superDecoder()) == "last" && list.isAtEnd)
      #expect(throws: DecodingError.self) { try list.decode(Int.self) }
      #expect(try Bool(from: container.superDecoder()))
    }

    func encode(to encoder: any Encoder) throws {
      var container = encoder.container(keyedBy: Key.self)
      var members = container.nestedContainer(keyedBy: Key.self, forKey: .members)
      try members.encode(1, forKey: .none)
      var list = container.nestedUnkeyedContainer(forKey: .list)
      var first = list.nestedContainer(keyedBy: Key.self)
      try first.encodeNil(forKey: .none)
      _ = list.nestedUnkeyedContainer()
      try list.encodeNil()
      try "last".encode(to: list.superEncoder())
      try true.encode(to: container.superEncoder())
    }
  }

  @Test("Containers in containers") func containers() throws {
    let written = JSONMessage.encode(Containers())
    #expect(written == Array(try Self.encoder.encode(Containers())))
    #expect(
      String(decoding: written, as: UTF8.self)
        == #"{"list":[{"none":null},[],null,"last"],"members":{"none":1},"super":true}"#)
    _ = try JSONMessage.decode(Containers.self, from: written, numbers: nil)
    _ = try JSONDecoder().decode(Containers.self, from: Data(written))
  }

  @Test(
    "What is wrong is named",
    arguments: [
      (#"{}"#, #""text" is missing"#), (#"{"text":1}"#, #""text" is not a string"#),
      (#"{"text":null}"#, #""text" is null"#),
      (#"{"text":"","number":"1"}"#, #""number" is not a whole number"#),
      (#"{"text":"","number":1,"small":256}"#, #""small" has an unknown value"#),
      (#"{"text":"","number":1,"small":-1}"#, #""small" has an unknown value"#),
      (#"{"text":"","number":0.5}"#, #""number" has an unknown value"#),
      (#"{"text":"","number":1e99}"#, #""number" has an unknown value"#),
      (#"{"text":"","number":1,"small":1,"port":1,"share":1,"kind":"three"}"#, #""kind" has an unknown value"#),
      (
        #"{"text":"","number":1,"small":1,"port":1,"share":1,"kind":"one","present":true}"#,
        #""present" is not a whole number"#
      ),
      (
        #"{"text":"","number":1,"small":1,"port":1,"share":1,"kind":"one","parts":[{"a":true},{"a":0}]}"#,
        #""parts[1].a" is not true or false"#
      ),
      (
        #"{"text":"","number":1,"small":1,"port":1,"share":1,"kind":"one","parts":[null]}"#, #""parts[0]" is null"#
      ),
      (#"{"text":"","number":1,"small":1,"port":1,"share":1,"kind":"one","parts":{}}"#, #""parts" is not a list"#),
      ("[]", "the whole text is not an object"), ("null", "the whole text is null"), ("{", "not JSON"),
    ])
  func errors(text: String, why: String) {
    #expect(throws: JSONMessage.FormError(why: why)) {
      try JSONMessage.decode(Sample.self, from: Array(text.utf8), numbers: nil)
    }
  }
}
