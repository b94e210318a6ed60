// SPDX-License-Identifier: Apache-2.0
import HTTP
import Testing

@Suite("Event stream decoder", .timeLimit(.minutes(5)))
struct EventStreamDecoderTests {
  struct Row: Sendable, CustomTestStringConvertible {
    let testDescription: String
    let text: [UInt8]
    let events: [ServerSentEvent]
    var comments = 0
    var lastEventID = ""

    init(_ name: String, _ text: String, _ events: [ServerSentEvent], comments: Int = 0, lastEventID: String = "") {
      self.init(name, Array(text.utf8), events, comments: comments, lastEventID: lastEventID)
    }

    init(_ name: String, _ text: [UInt8], _ events: [ServerSentEvent], comments: Int = 0, lastEventID: String = "") {
      (testDescription, self.text, self.events) = (name, text, events)
      (self.comments, self.lastEventID) = (comments, lastEventID)
    }
  }

  static let rows = [
    Row("nothing", "", []),
    Row("one event", "data: a\n\n", [event("a")]),
    Row("named", "event: request\ndata: a\n\n", [event("a", name: "request")]),
    Row("a name lasts for one event", "event: x\ndata: a\n\ndata: b\n\n", [event("a", name: "x"), event("b")]),
    Row("a name without data is forgotten", "event: x\n\ndata: a\n\n", [event("a")]),
    Row("lines of data", "data: a\ndata:\ndata: b\n\n", [event("a\n\nb")]),
    Row("empty data is data", "data\n\ndata:\n\n", [event(""), event("")]),
    Row("one space is cut, not two", "data:a\n\ndata:  a\n\n", [event("a"), event(" a")]),
    Row("the value may have colons", "data: a: b\n\n", [event("a: b")]),
    Row("carriage returns", "data: a\rdata: b\r\rdata: c\r\r", [event("a\nb"), event("c")]),
    Row("both line ends", "data: a\r\ndata: b\r\n\r\ndata: c\r\n\r\n", [event("a\nb"), event("c")]),
    Row("mixed line ends", "data: a\r\n\rdata: b\n\r\ndata: c\r\n\n", [event("a"), event("b"), event("c")]),
    Row("comments", ": beat\n\n:\ndata: a\n:in between\n\n", [event("a")], comments: 3),
    Row("byte order mark", "\u{FEFF}data: a\n\n", [event("a")]),
    Row("only the first byte order mark", "\u{FEFF}data: a\n\n\u{FEFF}data: b\n\n", [event("a")]),
    Row("a comment after a byte order mark", "\u{FEFF}: beat\n", [], comments: 1),
    Row(
      "an id stays", "id: 7\ndata: a\n\ndata: b\n\n", [event("a", id: "7"), event("b", id: "7")], lastEventID: "7"),
    Row("an id alone counts", "id: 7\n\n", [], lastEventID: "7"),
    Row("an id counts only when its event ends", "id: 7\ndata: a\n\nid: 8\n", [event("a", id: "7")], lastEventID: "7"),
    Row("an empty id takes the id away", "id: 7\n\nid\ndata: a\n\n", [event("a")]),
    Row("an id with NUL is ignored", "id: 7\n\nid: 8\0\ndata: a\n\n", [event("a", id: "7")], lastEventID: "7"),
    Row("retry and unknown fields are ignored", "retry: 5\ncolour: red\nDATA: a\ndata : b\n\n", []),
    Row("an unfinished event is dropped", "data: a\n\ndata: b\n", [event("a")]),
    Row("more than ASCII", "data: grün €\n\n", [event("grün €")]),
    Row("not UTF-8", Array("data: ".utf8) + [0xFF] + Array("\n\n".utf8), [event("\u{FFFD}")]),
  ]

  static func event(_ data: String, name: String = "message", id: String = "") -> ServerSentEvent {
    ServerSentEvent(name: name, data: data, id: id)
  }

  /// Divided at every two positions. This includes all pairs of halves, and every single byte alone in the middle.
  @Test("Text whose comparison takes long is refused", arguments: ["", "event:", "id:"]) func marks(field: String) {
    var decoder = EventStreamDecoder()
    let line = field + String(repeating: "\u{301}", count: 15_000) + String(repeating: "\u{316}", count: 15_000)
    #expect(throws: EventStreamError.tooManyMarks) { try decoder.decode(Array("\(line)\n".utf8)) }
  }

  @Test("Decodes however it is cut", arguments: rows)
  func decodesHoweverItIsCut(_ row: Row) throws {
    let end = row.text.count
    for first in 0...end {
      for second in first...end {
        let pieces = [row.text[..<first], row.text[first..<second], row.text[second...]].map(Array.init)
        try expect(row, from: pieces)
      }
    }
  }

  @Test("Decodes byte by byte", arguments: rows)
  func decodesByteByByte(_ row: Row) throws {
    try expect(row, from: row.text.map { [$0] })
  }

  private func expect(_ row: Row, from pieces: [[UInt8]]) throws {
    var decoder = EventStreamDecoder()
    var events: [ServerSentEvent] = []
    for piece in pieces { events += try decoder.decode(piece) }
    #expect(events == row.events, "cut into \(pieces)")
    #expect(decoder.comments == row.comments, "cut into \(pieces)")
    #expect(decoder.lastEventID == row.lastEventID, "cut into \(pieces)")
  }
}

@Suite("Event stream limits", .timeLimit(.minutes(5)))
struct EventStreamLimitTests {
  static let longestLine = EventStreamDecoder.maximumLineBytes
  static let longestEvent = EventStreamDecoder.maximumEventBytes

  @Test("Accepts the longest line and refuses one byte more", arguments: [1, 1000, 65_536, 100_000])
  func acceptsTheLongestLineAndRefusesOneByteMore(chunkSize: Int) throws {
    let longest = Array("data: ".utf8) + [UInt8](repeating: 0x78, count: Self.longestLine - 6)
    #expect(try decode(longest + [0x0A, 0x0A], by: chunkSize).first?.data.utf8.count == Self.longestLine - 6)
    #expect(throws: EventStreamError.lineTooLong(limit: Self.longestLine)) {
      try decode(longest + [0x78], by: chunkSize)
    }
    #expect(throws: EventStreamError.lineTooLong(limit: Self.longestLine)) {
      try decode([0x3A] + longest + [0x0A], by: chunkSize)
    }
  }

  @Test("Accepts the longest event and refuses one byte more") func acceptsTheLongestEventAndRefusesOneByteMore() throws
  {
    // 1023 bytes and the line feed that joins the line to the next one.
    let line = Array("data:".utf8) + [UInt8](repeating: 0x78, count: 1023) + [0x0A]
    let longest = Array([[UInt8]](repeating: line, count: Self.longestEvent / 1024).joined())
    #expect(try decode(longest + [0x0A], by: 5000).first?.data.utf8.count == Self.longestEvent - 1)
    for field in ["data\n", "event:x\n", "id:x\n"] {
      #expect(throws: EventStreamError.eventTooLong(limit: Self.longestEvent)) {
        try decode(longest + Array(field.utf8), by: 5000)
      }
    }
  }

  @Test("Stays refused after a limit") func staysRefusedAfterALimit() throws {
    var decoder = EventStreamDecoder()
    let failure = EventStreamError.lineTooLong(limit: Self.longestLine)
    #expect(throws: failure) { try decoder.decode([UInt8](repeating: 0x78, count: Self.longestLine + 1)) }
    #expect(throws: failure) { try decoder.decode(Array("\n\ndata: a\n\n".utf8)) }
  }

  @Test("Many events are no long event") func manyEventsAreNoLongEvent() throws {
    let text = Array(String(repeating: "event: request\nid: 7\ndata: 0123456789\n\n", count: 20_000).utf8)
    #expect(try decode(text, by: 16_384).count == 20_000)
  }

  private func decode(_ bytes: [UInt8], by chunkSize: Int) throws -> [ServerSentEvent] {
    var decoder = EventStreamDecoder()
    return try stride(from: 0, to: bytes.count, by: chunkSize).flatMap { start in
      try decoder.decode(Array(bytes[start..<min(start + chunkSize, bytes.count)]))
    }
  }
}
