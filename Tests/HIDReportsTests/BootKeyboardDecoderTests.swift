// SPDX-License-Identifier: Apache-2.0
import HIDReports
import Testing

/// Decodes a report with these keys down.
private func decode(
  _ usages: [UInt8], with decoder: inout BootKeyboardDecoder, into sink: SinkOfKeys
) throws {
  let report = [0, 0] + usages + [UInt8](repeating: 0, count: 6 - usages.count)
  try report.withUnsafeBytes { try decoder.decode($0, into: sink) }
}

@Suite("A boot keyboard's reports", .timeLimit(.minutes(5))) struct BootKeyboardDecoderTests {
  /// The keys decoded from a sequence of reports with these usages.
  private func keys(_ reports: [[UInt8]]) throws -> String {
    var decoder = BootKeyboardDecoder()
    let sink = SinkOfKeys()
    for usages in reports { try decode(usages, with: &decoder, into: sink) }
    return sink.keys
  }

  @Test("Mean what the usage table says, every usage of it") func meanWhatTheUsageTableSaysEveryUsageOfIt() throws {
    var expected: [UInt8: String] = [0x00: "", 0x01: "", 0x02: "", 0x03: "", 0x53: "", 0xB0: "00", 0xB1: "000"]
    for (usage, key) in zip(UInt8(0x1E)..., "1234567890") { expected[usage] = String(key) }
    for (usage, key) in zip(UInt8(0x59)..., "1234567890") { expected[usage] = String(key) }
    for usage: UInt8 in [0x28, 0x58] { expected[usage] = "E" }
    for usage: UInt8 in [0x2A, 0x63] { expected[usage] = "D" }
    (expected[0x55], expected[0x29]) = ("C", "X")
    for usage in UInt8.min ... .max {
      #expect(try keys([[usage], []]) == expected[usage, default: "O"], "usage \(usage)")
    }
  }

  @Test(
    "Are distinguished by the keys down before",
    arguments: [
      ("one key after the other", [[0x59], [], [0x5A], []], "12"),
      ("the same key twice", [[0x59], [], [0x59], []], "11"),
      ("a key that is held", [[0x59], [0x59], [0x59]], "1"),
      ("the next before the first is released", [[0x59], [0x59, 0x5A], [0x5A], [0x5A, 0x5B], []], "123"),
      ("the others move up", [[0x59, 0x5A, 0x5B], [0x5B], [0x5C, 0x5B]], "1234"),
      ("all at once, in the report's order", [[0x5E, 0x59, 0x62, 0x1E, 0x27, 0x58]], "61010E"),
      ("one usage in several slots", [[0x59, 0x59, 0, 0x59]], "1"),
      ("both zeros in one report", [[0xB0, 0xB1, 0x27]], "000000"),
      ("NumLock around a digit", [[0x53], [0x53, 0x5F], [0x53], []], "7"),
      ("too many keys", [[0x59], [1, 1, 1, 1, 1, 1], [0x59]], "1"),
      ("too many keys, then one more", [[0x59], [1, 1, 1, 1, 1, 1], [0x59, 0x5A]], "12"),
      ("a failure among keys", [[0x59, 2], [0x5A, 0, 0, 0, 0, 3], [0x5B]], "3"),
      ("a gap before the key", [[0, 0, 0, 0, 0, 0x60]], "8"),
    ] as [(String, [[UInt8]], String)])
  func areDistinguishedByTheKeysDownBefore(what: String, reports: [[UInt8]], expected: String) throws {
    #expect(try keys(reports) == expected, "\(what)")
  }

  @Test("Do not depend on modifiers or on the reserved byte") func doNotDependOnModifiersOrOnTheReservedByte() throws {
    var decoder = BootKeyboardDecoder()
    let sink = SinkOfKeys()
    for byte in UInt8.min ... .max {
      try [byte, ~byte, 0x61, 0, 0, 0, 0, 0].withUnsafeBytes { try decoder.decode($0, into: sink) }
      try decode([], with: &decoder, into: sink)
    }
    #expect(sink.keys == String(repeating: "9", count: 256))
  }

  @Test("Of another length are rejected and change nothing", arguments: [0, 1, 7, 9, 64])
  func ofAnotherLengthAreRejectedAndChangeNothing(length: Int) throws {
    var decoder = BootKeyboardDecoder()
    let sink = SinkOfKeys()
    try decode([0x59], with: &decoder, into: sink)
    let wrong = UnsafeMutableRawBufferPointer.allocate(byteCount: length, alignment: 1)
    defer { wrong.deallocate() }
    wrong.initializeMemory(as: UInt8.self, repeating: 0x5A)
    var fault: BootKeyboardDecoder.ReportError?
    do { try decoder.decode(UnsafeRawBufferPointer(wrong), into: sink) } catch { fault = error }
    #expect(fault == .length(length))
    try decode([0x59], with: &decoder, into: sink)
    #expect(sink.keys == "1")
  }

  @Test("Start again for another keypad") func startAgainForAnotherKeypad() throws {
    var decoder = BootKeyboardDecoder()
    let sink = SinkOfKeys()
    try decode([0x59], with: &decoder, into: sink)
    decoder.reset()
    try decode([0x59], with: &decoder, into: sink)
    #expect(sink.keys == "11")
  }

  /// Compares with a decoder that uses sets and branches.
  @Test("At random are decoded as by a simple decoder") func atRandomAreDecodedAsByASimpleDecoder() throws {
    let seed = UInt64.random(in: .min ... .max)
    var random = Xorshift(state: seed | 1)
    // Mostly keys with an effect and often the same key, so that holding, moving and repeating occur.
    let likely: [UInt8] = [0, 0, 0, 0x59, 0x5A, 0x62, 0x1E, 0x27, 0x58, 0x2A, 0x55, 0x29, 0x53, 0xB0, 0x63]
    for _ in 0..<300 {
      var decoder = BootKeyboardDecoder()
      var naive = NaiveDecoder()
      let sink = SinkOfKeys()
      var expected = ""
      for _ in 0..<40 {
        let usages = (0..<6).map { _ in
          UInt8.random(in: 0..<20, using: &random) == 0
            ? UInt8.random(in: .min ... .max, using: &random) : likely.randomElement(using: &random)!
        }
        try decode(usages, with: &decoder, into: sink)
        expected += naive.keys(usages)
        try #require(sink.keys == expected, "seed \(seed), usages \(usages)")
      }
    }
  }
}

private struct NaiveDecoder {
  private var down: Set<UInt8> = []

  mutating func keys(_ usages: [UInt8]) -> String {
    if usages.contains(where: { (1...3).contains($0) }) { return "" }
    var keys = ""
    var seen = down
    for usage in usages where usage != 0 && seen.insert(usage).inserted { keys += meaning(usage) }
    down = Set(usages)
    return keys
  }

  private func meaning(_ usage: UInt8) -> String {
    switch usage {
    case 0x1E...0x26: "\(usage - 0x1D)"
    case 0x59...0x61: "\(usage - 0x58)"
    case 0x27, 0x62: "0"
    case 0xB0: "00"
    case 0xB1: "000"
    case 0x28, 0x58: "E"
    case 0x2A, 0x63: "D"
    case 0x55: "C"
    case 0x29: "X"
    case 0x53: ""
    default: "O"
    }
  }
}

private struct Xorshift: RandomNumberGenerator {
  var state: UInt64

  mutating func next() -> UInt64 {
    state ^= state << 13
    state ^= state >> 7
    state ^= state << 17
    return state
  }
}
